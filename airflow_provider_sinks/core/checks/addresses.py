"""Addresses that a connection may not lead to: behind them stand the secrets of the machine itself.

Who may write a connection could otherwise make a worker talk to the metadata service of its cloud. Private
addresses are not among them: brokers stand there.

>>> forbidden("169.254.169.254")
'a link-local address; metadata services of clouds stand there'
>>> forbidden("10.0.0.7")
''
"""

from __future__ import annotations

import ipaddress

METADATA = frozenset(
    map(
        ipaddress.ip_address,
        [
            "100.100.100.200",  # Alibaba
            "168.63.129.16",  # Azure
            "192.0.0.192",  # Oracle
            "fd00:ec2::254",  # AWS
            "fd20:ce::254",  # Google
        ],
    )
)
"""Those that are not link-local."""


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def forbidden(address: str) -> str:
    """Return why nothing may be sent to an address, or an empty text.

    :param address: an IP address; IPv4 in IPv6 is judged as IPv4.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip.sixtofour or _translated(ip) or ip
    if ip.is_link_local:
        return "a link-local address; metadata services of clouds stand there"
    if ip in METADATA:
        return "the address of a cloud's metadata service"
    if ip.is_unspecified or ip.is_multicast or ip == ipaddress.ip_address("255.255.255.255"):
        return "not the address of one machine"
    return ""


def _translated(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None
