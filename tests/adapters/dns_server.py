"""A name server on loopback that knows what a test tells it, over UDP and TCP."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

Zone = Mapping[str, Mapping[str, Sequence[str]]]


class DnsServer:
    """``zone`` is name → type → records, in the words of a zone file. A name that is not there is NXDOMAIN.

    ``silent`` reads questions and answers none; ``broken`` answers SERVFAIL; one that is ``cut_off`` does not
    know the root either.
    """

    def __init__(
        self, zone: Zone, *, silent: bool = False, broken: bool = False, cut_off: bool = False
    ) -> None:
        self._zone = {} if cut_off else {".": {}} | {name.lower(): records for name, records in zone.items()}
        self._silent = silent
        self._broken = broken
        self.questions: list[tuple[str, str]] = []

    def __enter__(self) -> DnsServer:
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._threads = [threading.Thread(target=serve) for serve in (self._serve_udp, self._serve_tcp)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
            waker.sendto(b"", ("127.0.0.1", self.port))
        self._tcp.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()
        self._udp.close()
        self._tcp.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _serve_udp(self) -> None:
        while True:
            question, client = self._udp.recvfrom(4096)
            if not question:
                return
            answer = self._answer(question)
            if answer is not None:
                self._udp.sendto(answer.to_wire(max_size=1232), client)

    def _serve_tcp(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                (length,) = struct.unpack("!H", connection.recv(2, socket.MSG_WAITALL))
                answer = self._answer(connection.recv(length, socket.MSG_WAITALL))
                if answer is not None:
                    wire = answer.to_wire()
                    connection.sendall(struct.pack("!H", len(wire)) + wire)

    def _answer(self, wire: bytes) -> dns.message.Message | None:
        query = dns.message.from_wire(wire)
        name = query.question[0].name
        kind = dns.rdatatype.to_text(query.question[0].rdtype)
        self.questions.append((name.to_text(omit_final_dot=True), kind))
        if self._silent:
            return None
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.AA | dns.flags.RA
        if self._broken:
            answer.set_rcode(dns.rcode.SERVFAIL)
            return answer
        if not self._find(answer, name, kind):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        return answer

    def _find(self, answer: dns.message.Message, name: dns.name.Name, kind: str) -> bool:
        """Add what the zone knows; a CNAME is followed, as a resolver does it for its clients."""
        known = self._zone.get(name.to_text(omit_final_dot=True).lower())
        if known is None:
            return False
        if known.get(kind):
            answer.answer.append(dns.rrset.from_text_list(name, 60, "IN", kind, list(known[kind])))
        elif known.get("CNAME"):
            answer.answer.append(dns.rrset.from_text_list(name, 60, "IN", "CNAME", list(known["CNAME"])))
            self._find(answer, dns.name.from_text(known["CNAME"][0]), kind)
        return True
