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
_SPARK = Arg(("--spark-conn-id",), help="the Spark connection (default: %(default)s)", default=SPARK_CONN_ID)
_ASK_SPARK = ("auto", "always", "never")
_OUTPUTS = ("keep", "empty", "recreate")
_MASKS = ("none", "values", "all")
_REPLAY_DAG = "replay_dead_letters"
_LETTERS_MAX = 20
_WHICH = (
    Arg(
        ("--error",),
        help="parse, convert, too_large, refused, or a part of the error; may be given again",
        action="append",
        default=[],
        metavar="ERROR",
    ),
    Arg(("--since",), help="set aside then or later, such as 2026-11-20T22:00:00Z", metavar="TIME"),
    Arg(("--before",), help="set aside before then", metavar="TIME"),
    Arg(("--offsets",), help="of the dead-letter topic, such as 0:120-140,1:7", metavar="OFFSETS"),
)


def _command(name: str, help_text: str, *args: Arg, epilog: str = EPILOG) -> ActionCommand:
    module, _, function = FUNCTIONS[name].rpartition(".")
    func = lazy_load_command(f"airflow_provider_sinks.cli.{module}.{function}")
    return ActionCommand(name=name.rpartition(" ")[2], help=help_text, func=func, args=args, epilog=epilog)


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
    "new-connector": "new_connector.new_connector",
    "class-archive": "class_archive.class_archive",
    "dead-letters list": "dead_letters.list_letters",
    "dead-letters count": "dead_letters.count",
    "dead-letters show": "dead_letters.show_letter",
    "dead-letters replay": "dead_letters.replay",
}
"""Where each command is, below this folder."""


def get_cli_commands() -> list[CLICommand]:
    """Return the commands, as Airflow's provider manager wants them."""
    looking = (_SINK, _API, ARG_OUTPUT)
    commands: list[CLICommand] = [
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
            _SPARK,
            _FOLDER,
            _API,
            ARG_OUTPUT,
        ),
        _command(
            "check",
            "check all connections of sinks, and their SQL by Spark; touches nothing",
            Arg(("sinks",), help="names of sinks (default: all of --folder)", nargs="*", metavar="SINK"),
            _SPARK,
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
    commands.append(
        _command(
            "new-connector",
            "write a project with a target of your own that works; asks no Airflow",
            Arg(("name",), help="how specs call the target, such as shelf", metavar="NAME"),
            Arg(
                ("-F", "--folder"),
                help="where the project goes; it must not be there (default: ./sinks-connector-NAME)",
                metavar="FOLDER",
            ),
            ARG_OUTPUT,
        )
    )
    commands.append(
        _command(
            "class-archive",
            "keep Spark's classes in a file: drivers on this machine start sooner; asks no Airflow",
            Arg(
                ("--spark-submit",),
                help="the command that submits (default: %(default)s)",
                default="spark-submit",
                metavar="COMMAND",
            ),
            ARG_OUTPUT,
        )
    )
    commands.append(
        GroupCommand(
            name="dead-letters",
            help="what a sink has set aside: list, count, show, replay",
            subcommands=_letters(),
        )
    )
    return [GroupCommand(name="sinks", help="Look at streaming sinks and act on them", subcommands=commands)]


def _letters() -> list[ActionCommand]:
    looking = (_SINK, *_WHICH, _API, ARG_OUTPUT)
    limit = Arg(
        ("--limit",),
        help="how many at most (default: %(default)s)",
        type=int,
        default=_LETTERS_MAX,
        metavar="N",
    )
    place = Arg(("place",), help="where it stands, as the list says", metavar="PLACE")
    mask = Arg(
        ("--mask",),
        help="what of its content is hidden: nothing, values of JSON, all (default: %(default)s)",
        choices=_MASKS,
        default="values",
    )
    overwrite = Arg(
        ("--overwrite",), help="older rows may replace newer ones of their key", action="store_true"
    )
    forget = Arg(
        ("--forget",),
        help="where the progress of earlier replays is lost: what they took may be taken again",
        action="store_true",
    )
    dag = Arg(
        ("--dag",), help="the form that runs it (default: %(default)s)", default=_REPLAY_DAG, metavar="DAG_ID"
    )
    return [
        _command("dead-letters list", "the newest dead letters of a sink", *looking, limit),
        _command("dead-letters count", "how many there are of each error", *looking),
        _command("dead-letters show", "one of them, masked", _SINK, place, mask, _API, ARG_OUTPUT),
        _command(
            "dead-letters replay",
            "let them through the sink's query as it is now, each once; what fails again comes back",
            *_ACTING,
            *_WHICH,
            overwrite,
            forget,
            dag,
            ARG_YES,
        ),
    ]
