#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pando::dns {

/// A mnemonic of a number in RDATA. The first of several mnemonics for one number is printed.
struct Mnemonic {
  std::string_view text;  ///< upper case
  std::uint16_t value;
};

/// The number of the mnemonic `text`, in any case.
[[nodiscard]] std::optional<std::uint16_t> find_mnemonic(std::span<const Mnemonic> table,
                                                         std::string_view text) noexcept;
/// The mnemonic of `value`; empty if `value` has none.
[[nodiscard]] std::string_view mnemonic_of(std::span<const Mnemonic> table,
                                           std::uint16_t value) noexcept;

// Mnemonics that BIND reads, by IANA registry.

// "DNS Security Algorithm Numbers"
inline constexpr Mnemonic kDnssecAlgorithms[] = {
    {"RSAMD5", 1},
    {"DH", 2},
    {"DSA", 3},
    {"RSASHA1", 5},
    {"NSEC3DSA", 6},
    {"NSEC3RSASHA1", 7},
    {"RSASHA256", 8},
    {"RSASHA512", 10},
    {"ECCGOST", 12},
    {"ECDSAP256SHA256", 13},
    {"ECDSAP384SHA384", 14},
    {"ED25519", 15},
    {"ED448", 16},
    {"INDIRECT", 252},
    {"PRIVATEDNS", 253},
    {"PRIVATEOID", 254},
};

// "Digest Algorithms" of DS records
inline constexpr Mnemonic kDigestTypes[] = {
    {"SHA-1", 1}, {"SHA1", 1},    {"SHA-256", 2}, {"SHA256", 2},
    {"GOST", 3},  {"SHA-384", 4}, {"SHA384", 4},
};

// RFC 4398 §2.1
inline constexpr Mnemonic kCertificateTypes[] = {
    {"PKIX", 1}, {"SPKI", 2},   {"PGP", 3},     {"IPKIX", 4}, {"ISPKI", 5},
    {"IPGP", 6}, {"ACPKIX", 7}, {"IACPKIX", 8}, {"URI", 253}, {"OID", 254},
};

// RFC 2535 §3.1.2 and RFC 4034 §2.1.1; joined by '|'
inline constexpr Mnemonic kKeyFlagNames[] = {
    {"NOCONF", 0x4000}, {"NOAUTH", 0x8000}, {"NOKEY", 0xC000},  {"FLAG2", 0x2000},
    {"EXTEND", 0x1000}, {"FLAG4", 0x0800},  {"FLAG5", 0x0400},  {"USER", 0x0000},
    {"ZONE", 0x0100},   {"HOST", 0x0200},   {"NTYP3", 0x0300},  {"FLAG8", 0x0080},
    {"FLAG9", 0x0040},  {"FLAG10", 0x0020}, {"FLAG11", 0x0010}, {"SIG0", 0},
    {"SIG1", 1},        {"SIG2", 2},        {"SIG3", 3},        {"SIG4", 4},
    {"SIG5", 5},        {"SIG6", 6},        {"SIG7", 7},        {"SIG8", 8},
    {"SIG9", 9},        {"SIG10", 10},      {"SIG11", 11},      {"SIG12", 12},
    {"SIG13", 13},      {"SIG14", 14},      {"SIG15", 15},      {"KSK", 1},
};

inline constexpr Mnemonic kKeyProtocols[] = {
    // RFC 2535 §3.1.3
    {"NONE", 0}, {"TLS", 1}, {"EMAIL", 2}, {"DNSSEC", 3}, {"IPSEC", 4}, {"ALL", 255},
};

inline constexpr Mnemonic kNsec3Hashes[] = {{"SHA-1", 1}, {"SHA1", 1}};
inline constexpr Mnemonic kDsyncSchemes[] = {{"NOTIFY", 1}};  // RFC 9859

// WKS is obsolete. Names from the host's /etc/services would give one zone two meanings on two
// hosts.
inline constexpr Mnemonic kIpProtocols[] = {{"ICMP", 1}, {"TCP", 6}, {"UDP", 17}};
inline constexpr Mnemonic kPorts[] = {
    {"ECHO", 7},       {"DISCARD", 9},     {"SYSTAT", 11},    {"DAYTIME", 13},    {"NETSTAT", 15},
    {"CHARGEN", 19},   {"FTP-DATA", 20},   {"FTP", 21},       {"SSH", 22},        {"TELNET", 23},
    {"SMTP", 25},      {"TIME", 37},       {"RLP", 39},       {"NAMESERVER", 42}, {"WHOIS", 43},
    {"NICNAME", 43},   {"DOMAIN", 53},     {"BOOTPS", 67},    {"BOOTPC", 68},     {"TFTP", 69},
    {"GOPHER", 70},    {"FINGER", 79},     {"HTTP", 80},      {"KERBEROS", 88},   {"SUPDUP", 95},
    {"HOSTNAME", 101}, {"HOSTNAMES", 101}, {"ISO-TSAP", 102}, {"X400", 103},      {"POP2", 109},
    {"POP3", 110},     {"SUNRPC", 111},    {"AUTH", 113},     {"SFTP", 115},      {"NNTP", 119},
    {"NTP", 123},      {"IMAP", 143},      {"IMAP2", 143},    {"SNMP", 161},      {"SNMPTRAP", 162},
    {"BGP", 179},      {"IRC", 194},       {"LDAP", 389},     {"HTTPS", 443},     {"SYSLOG", 514},
    {"PRINTER", 515},  {"NTALK", 518},     {"IMAPS", 993},    {"POP3S", 995},
};

}  // namespace pando::dns
