"""The C API of librdkafka, as its public header declares it: the library, structures and functions.

It is the library that confluent-kafka runs on: its extension module is opened once more, and the system's
loader finds librdkafka's symbols behind it, wherever the wheel or the system keeps the file.

A structure that is declared wrongly is memory that is written wrongly. Only versions that these declarations
were tested with are used this way (:func:`untested`); with another one rows go the way of
:mod:`.object_producer`.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, Union, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t
from ctypes import c_ssize_t as c_signed_size
from ctypes import c_void_p as pointer

import confluent_kafka
from confluent_kafka import cimpl

TESTED = frozenset({"2.16.0"})
"""Versions of librdkafka for which the tests of this binding have passed."""

PRODUCER, CONSUMER = 0, 1
ANY_PARTITION = -1
COPY = 0x2
EACH_PARTITION = 0x8
"""Of the batch call: each message names its partition."""
PURGE_ALL = 0x3
TEXT_BYTES = 512


class Message(Structure):
    """``rd_kafka_message_t``: a row to be produced, the report of its delivery, or a record that was read."""

    _fields_ = (
        ("err", c_int),
        ("topic", pointer),
        ("partition", c_int32),
        ("payload", pointer),
        ("len", c_size_t),
        ("key", pointer),
        ("key_len", c_size_t),
        ("offset", c_int64),
        ("private", pointer),
    )


class Bytes(Structure):
    """The bytes of a key or value in a :class:`Part`."""

    _fields_ = (("at", c_char_p), ("size", c_size_t))


class Header(Structure):
    """A header in a :class:`Part`."""

    _fields_ = (("name", c_char_p), ("value", c_char_p), ("size", c_size_t))


class PartContent(Union):
    """What a :class:`Part` holds."""

    _fields_ = (
        ("text", c_char_p),
        ("number", c_int32),
        ("content", Bytes),
        ("header", Header),
        ("headers", pointer),
        ("padding", c_char * 64),
    )


class Part(Structure):
    """``rd_kafka_vu_t``: one part of a record that is produced by itself."""

    _fields_ = (("kind", c_int), ("u", PartContent))


TOPIC_PART, TOPIC_HANDLE_PART, PARTITION_PART, VALUE_PART, KEY_PART = 1, 2, 3, 4, 5
FLAGS_PART, TIME_PART, HEADER_PART, HEADERS_PART = 7, 8, 9, 10
"""Kinds of a :class:`Part`."""

ErrorCallback = CFUNCTYPE(None, pointer, c_int, c_char_p, pointer)
DeliveryCallback = CFUNCTYPE(None, pointer, POINTER(Message), pointer)

_FUNCTIONS = {
    "rd_kafka_conf_new": (pointer,),
    "rd_kafka_conf_set": (c_int, pointer, c_char_p, c_char_p, c_char_p, c_size_t),
    "rd_kafka_conf_set_error_cb": (None, pointer, ErrorCallback),
    "rd_kafka_conf_set_dr_msg_cb": (None, pointer, DeliveryCallback),
    "rd_kafka_conf_destroy": (None, pointer),
    "rd_kafka_new": (pointer, c_int, pointer, c_char_p, c_size_t),
    "rd_kafka_destroy": (None, pointer),
    "rd_kafka_topic_new": (pointer, pointer, c_char_p, pointer),
    "rd_kafka_topic_name": (c_char_p, pointer),
    "rd_kafka_topic_destroy": (None, pointer),
    "rd_kafka_last_error": (c_int,),
    "rd_kafka_metadata": (c_int, pointer, c_int, pointer, POINTER(pointer), c_int),
    "rd_kafka_metadata_destroy": (None, pointer),
    "rd_kafka_init_transactions": (pointer, pointer, c_int),
    "rd_kafka_begin_transaction": (pointer, pointer),
    "rd_kafka_commit_transaction": (pointer, pointer, c_int),
    "rd_kafka_abort_transaction": (pointer, pointer, c_int),
    "rd_kafka_produce_batch": (c_int, pointer, c_int32, c_int, pointer, c_int),
    "rd_kafka_produceva": (pointer, pointer, pointer, c_size_t),
    "rd_kafka_headers_new": (pointer, c_size_t),
    "rd_kafka_header_add": (c_int, pointer, c_char_p, c_signed_size, c_char_p, c_signed_size),
    "rd_kafka_headers_destroy": (None, pointer),
    "rd_kafka_queue_new": (pointer, pointer),
    "rd_kafka_queue_destroy": (None, pointer),
    "rd_kafka_consume_start_queue": (c_int, pointer, c_int32, c_int64, pointer),
    "rd_kafka_consume_stop": (c_int, pointer, c_int32),
    "rd_kafka_consume_batch_queue": (c_signed_size, pointer, c_int, pointer, c_size_t),
    "rd_kafka_poll": (c_int, pointer, c_int),
    "rd_kafka_flush": (c_int, pointer, c_int),
    "rd_kafka_purge": (c_int, pointer, c_int),
    "rd_kafka_outq_len": (c_int, pointer),
    "rd_kafka_fatal_error": (c_int, pointer, c_char_p, c_size_t),
    "rd_kafka_error_code": (c_int, pointer),
    "rd_kafka_error_string": (c_char_p, pointer),
    "rd_kafka_error_is_fatal": (c_int, pointer),
    "rd_kafka_error_is_retriable": (c_int, pointer),
    "rd_kafka_error_txn_requires_abort": (c_int, pointer),
    "rd_kafka_error_destroy": (None, pointer),
}
"""By name: the type of the result, then those of the arguments."""


@functools.cache
def library() -> ctypes.CDLL:
    """Return the library with its functions declared. Calls let other threads run.

    :raises AttributeError: it lacks one of them.
    """
    found = ctypes.CDLL(cimpl.__file__)
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


@functools.cache
def message_destroyer() -> Callable[[int], None]:
    """Return what frees a message that was read. It lets no other thread run: it takes less than that would.

    :raises AttributeError: the library lacks it.
    """
    function = ctypes.PyDLL(cimpl.__file__).rd_kafka_message_destroy
    function.restype, function.argtypes = None, (pointer,)
    found: Callable[[int], None] = function
    return found


@functools.cache
def untested() -> str:
    """Return why the library is not used by these declarations, as a sentence; empty when it is."""
    version = confluent_kafka.libversion()[0]
    if version not in TESTED:
        return f"librdkafka {version} was not tested; tested: {', '.join(sorted(TESTED))}."
    try:
        library()
        message_destroyer()
    except (AttributeError, OSError) as error:
        return f"librdkafka {version} is not to be had by its C API: {error}."
    return ""
