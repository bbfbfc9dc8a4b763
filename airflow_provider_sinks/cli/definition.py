"""What ``airflow sinks`` offers. Imported with every ``airflow`` command, so it imports nothing of ours."""

from __future__ import annotations

from airflow.cli.cli_config import (
    ARG_OUTPUT,
    ARG_YES,
    ActionCommand,
    Arg,
    CLICommand,
    GroupCommand,
    lazy_load_command,
)

EPILOG = (
    "exit codes: 0 well, 1 not confirmed, 2 wrong usage, 64 a person must change something, 65 refused, "
    "66 overtaken by a newer start, 69 something could not be reached or seen, 70 failed"
)
API_CONN_ID = "airflow_api_default"
SPARK_CONN_ID = "spark_default"

_SINK = Arg(("sink",), help="the sink's name")
_API = Arg(
    ("--api-conn-id",),
    help="the connection of type http that leads to Airflow's REST API (default: %(default)s)",
    default=API_CONN_ID,
)
_FOLDER = Arg(
    ("-F", "--folder"),
    help="take the sinks from the DAGs and YAML files of this folder, not from Airflow",
    metavar="FOLDER",
)
_YARN = Arg(
    ("--yarn-conn-id",),
    help="a Spark connection: look for drivers on its YARN, too",
    metavar="CONN_ID",
)
_DRY_RUN = Arg(("-n", "--dry-run"), help="only say what would be done", action="store_true")
_ACTING = (_SINK, _DRY_RUN, _API, ARG_OUTPUT)
_ASK_SPARK = ("auto", "always", "never")
_OUTPUTS = ("keep", "empty", "recreate")


def _command(name: str, help_text: str, *args: Arg, epilog: str = EPILOG) -> ActionCommand:
    module, _, function = FUNCTIONS[name].rpartition(".")
    func = lazy_load_command(f"airflow_provider_sinks.cli.{module}.{function}")
    return ActionCommand(name=name, help=help_text, func=func, args=args, epilog=epilog)


FUNCTIONS = {
    "list": "showing.list_sinks",
    "describe": "showing.describe",
    "status": "showing.status",
    "progress": "progress.progress",
    "plan": "checking.plan",
    "check": "checking.check",
    "pause": "acting.pause",
    "resume": "acting.resume",
    "restart": "acting.restart",
    "rewind": "acting.rewind",
    "reset": "acting.reset",
    "drop": "acting.drop",
}
"""Where each command is, below this folder."""


def get_cli_commands() -> list[CLICommand]:
    """Return the commands, as Airflow's provider manager wants them."""
    looking = (_SINK, _API, ARG_OUTPUT)
    commands = [
        _command("list", "all sinks, and how they do", _FOLDER, _API, _YARN, ARG_OUTPUT),
        _command(
            "describe", "what a sink is: spec, topics, guarantee, DAGs", _SINK, _FOLDER, _API, ARG_OUTPUT
        ),
        _command(
            "status",
            "where a sink stands, since when, and why",
            *looking,
            _YARN,
            Arg(("--history",), help="what came before, too", action="store_true"),
            epilog=f"{EPILOG}; of a sink that is stalled 69, and of one that failed or is orphaned 70",
        ),
        _command("progress", "what the sink's own records say: how far each writer is", *looking),
        _command(
            "plan",
            "what a start would do now; touches nothing",
            _SINK,
            Arg(("--accept",), help="the code that a refusal printed", metavar="CODE"),
            _FOLDER,
            _API,
            ARG_OUTPUT,
        ),
        _command(
            "check",
            "check all connections of sinks, and their SQL by Spark; touches nothing",
            Arg(("sinks",), help="names of sinks (default: all of --folder)", nargs="*", metavar="SINK"),
            Arg(
                ("--spark-conn-id",),
                help="the Spark connection (default: %(default)s)",
                default=SPARK_CONN_ID,
            ),
            Arg(
                ("--ask-spark",),
                help="ask Spark about the SQL: where it is there, in any case, or not (default: %(default)s)",
                choices=_ASK_SPARK,
                default=_ASK_SPARK[0],
            ),
            _FOLDER,
            _API,
            ARG_OUTPUT,
        ),
        _command("pause", "let nothing start a sink, and end what runs", *_ACTING, _YARN, ARG_YES),
        _command("resume", "let a sink be started again", *_ACTING),
        _command("restart", "end the driver of a sink and start another", *_ACTING),
        _command(
            "rewind",
            "let a stopped sink read a part of its source again",
            *_ACTING,
            Arg(("--offsets",), help="by source partition, such as 0:120,1:earliest", metavar="OFFSETS"),
            Arg(("--time",), help="such as 2026-11-20T22:00:00Z", metavar="TIME"),
            Arg(("--epoch",), help="the first epoch that is written again", metavar="EPOCH"),
            Arg(("--generation",), help="of that epoch (default: the newest)", metavar="GENERATION"),
            Arg(
                ("--skip",), help="offsets may lie ahead: what is between is never read", action="store_true"
            ),
            ARG_YES,
        ),
        _command(
            "reset",
            "let a stopped sink begin anew, as a new generation",
            *_ACTING,
            Arg(
                ("--data",),
                help="what becomes of the data topic or table (default: keep)",
                choices=_OUTPUTS,
                default="keep",
            ),
            Arg(
                ("--dead-letter",),
                help="what becomes of the dead-letter topic or table (default: keep)",
                choices=_OUTPUTS,
                default="keep",
            ),
            ARG_YES,
        ),
        _command(
            "drop",
            "stop a sink and forget it; its topics or tables stay",
            *_ACTING,
            _YARN,
            Arg(
                ("--delete-topic", "--delete-table"),
                help="delete this topic or table of the sink with it; may be given again",
                action="append",
                default=[],
                metavar="NAME",
            ),
            ARG_YES,
        ),
    ]
    return [GroupCommand(name="sinks", help="Look at streaming sinks and act on them", subcommands=commands)]
