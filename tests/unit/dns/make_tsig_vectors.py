#!/usr/bin/env python3
"""Makes tsig_vectors.h with dnspython, an implementation of TSIG that is not ours.

    /usr/bin/python3 tests/unit/dns/make_tsig_vectors.py > tests/unit/dns/tsig/tsig_vectors.h
"""
import os
import sys

sys.path = [p for p in sys.path if p not in ("", os.getcwd())]  # the tree has a folder dns/ too

import dns.message
import dns.name
import dns.rdata
import dns.rdtypes.ANY.TSIG
import dns.renderer
import dns.rrset
import dns.tsig

TIME = 1_700_000_000
SECRET = bytes(range(1, 41))
ALGORITHMS = ["hmac-md5.sig-alg.reg.int.", "hmac-sha1.", "hmac-sha224.", "hmac-sha256.",
              "hmac-sha384.", "hmac-sha512.", "hmac-sha256-128.", "hmac-sha384-192.",
              "hmac-sha512-256."]


def key_of(algorithm):
    return dns.tsig.Key("Update-Key.Example.", SECRET, dns.name.from_text(algorithm))


def append_tsig(wire, key, rdata):
    """The message with the finished TSIG behind it and one more additional record."""
    count = int.from_bytes(wire[10:12], "big") + 1
    body = rdata.to_wire()
    record = (key.name.to_wire() + b"\0\xfa" + b"\0\xff" + b"\0\0\0\0" +
              len(body).to_bytes(2, "big") + body)
    return wire[:10] + count.to_bytes(2, "big") + wire[12:] + record


def sign(wire, key, time, request_mac=b"", ctx=None, multi=False, error=0, other=b"", shown=None):
    template = dns.rdtypes.ANY.TSIG.TSIG(dns.rdataclass.ANY, dns.rdatatype.TSIG, key.algorithm, 0,
                                         300, b"", int.from_bytes(wire[:2], "big"), error, other)
    rdata, ctx = dns.tsig.sign(wire, key, template, time, request_mac, ctx, multi)
    return append_tsig(wire, key, rdata), rdata.mac, ctx


def query(qname, qtype, ident):
    message = dns.message.make_query(qname, qtype, flags=0)
    message.id = ident
    return message


def response(request, *records):
    message = dns.message.make_response(request)
    for name, ttl, rrtype, text in records:
        message.answer.append(dns.rrset.from_text(name, ttl, "IN", rrtype, text))
    return message.to_wire()


def stream(key):
    """An AXFR of three messages; the one in the middle is not signed (RFC 8945 section 5.3.1)."""
    request = query("example.", "AXFR", 4711)
    soa = ("example.", 3600, "SOA", "ns.example. admin.example. 7 3600 600 86400 300")
    request_wire, request_mac, _ = sign(request.to_wire(), key, TIME)
    first, _, ctx = sign(response(request, soa), key, TIME + 1, request_mac, None, True)
    middle = response(request, ("a.example.", 60, "A", "192.0.2.1"))
    ctx.update(middle)
    last, _, _ = sign(response(request, soa), key, TIME + 2, b"", ctx, True)
    return request_wire, first, middle, last


def one_exchange(key):
    request = query("www.example.", "A", 0x1234)
    request_wire, request_mac, _ = sign(request.to_wire(), key, TIME)
    answer, _, _ = sign(response(request, ("www.example.", 60, "A", "192.0.2.1")), key, TIME + 3,
                        request_mac)
    return request_wire, answer


def bad_time(key):
    """Signed with the client's time, the server's in Other Data (RFC 8945 section 5.2.3)."""
    request = query("www.example.", "A", 0x1234)
    _, request_mac, _ = sign(request.to_wire(), key, TIME)
    refusal = dns.message.make_response(request)
    refusal.set_rcode(dns.rcode.NOTAUTH)
    wire, _, _ = sign(refusal.to_wire(), key, TIME, request_mac, error=18,
                      other=(TIME + 10_000).to_bytes(6, "big"))
    return wire


def literal(data):
    """Adjacent string literals, so that lines stay short."""
    text = data.hex()
    return "\n     ".join(f'"{text[i:i + 88]}"' for i in range(0, len(text), 88))


def main():
    print("// Made by make_tsig_vectors.py with dnspython; do not edit.\n#pragma once\n")
    print("namespace pando::dns::vectors {\n")
    print(f"inline constexpr unsigned long kTime = {TIME};")
    print('inline constexpr const char* kKeyName = "Update-Key.Example.";')
    print(f"inline constexpr const char* kSecret =\n     {literal(SECRET)};\n")
    print("// clang-format off")
    print("/// One exchange: the request signed at kTime, its answer at kTime + 3.")
    print("struct Exchange {\n  const char* algorithm;\n  const char* request;\n  const char* answer;\n};")
    print("inline constexpr Exchange kExchanges[] = {")
    for algorithm in ALGORITHMS:
        request, answer = one_exchange(key_of(algorithm))
        print(f'    {{"{algorithm}",\n     {literal(request)},\n     {literal(answer)}}},')
    print("};\n")
    print("/// AXFR over three messages, the second without TSIG: kTime, + 1, -, + 2.")
    print("struct Stream {\n  const char* algorithm;\n  const char* request;\n"
          "  const char* messages[3];\n};")
    print("inline constexpr Stream kStreams[] = {")
    for algorithm in ("hmac-sha1.", "hmac-sha256.", "hmac-sha512."):
        request, *messages = stream(key_of(algorithm))
        joined = ",\n      ".join(literal(message) for message in messages)
        print(f'    {{"{algorithm}",\n     {literal(request)},\n     {{{joined}}}}},')
    print("};\n")
    print("/// NOTAUTH with BADTIME, hmac-sha256, to kExchanges' request; server at kTime + 10000.")
    print(f"inline constexpr const char* kBadTime =\n     {literal(bad_time(key_of('hmac-sha256.')))};")
    print("// clang-format on\n\n}  // namespace pando::dns::vectors")


if __name__ == "__main__":
    main()
