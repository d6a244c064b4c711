#include "dns/types.h"

#include <array>
#include <optional>

#include "dns/text.h"

namespace pando::dns {

namespace {

struct TypeName {
  std::string_view text;
  RRType type;
};

// IANA "Resource Record (RR) TYPEs", with BIND's names.
constexpr TypeName kTypeNames[] = {
    {"A", RRType::kA},
    {"NS", RRType::kNS},
    {"MD", RRType::kMD},
    {"MF", RRType::kMF},
    {"CNAME", RRType::kCNAME},
    {"SOA", RRType::kSOA},
    {"MB", RRType::kMB},
    {"MG", RRType::kMG},
    {"MR", RRType::kMR},
    {"NULL", RRType::kNULL},
    {"WKS", RRType::kWKS},
    {"PTR", RRType::kPTR},
    {"HINFO", RRType::kHINFO},
    {"MINFO", RRType::kMINFO},
    {"MX", RRType::kMX},
    {"TXT", RRType::kTXT},
    {"RP", RRType::kRP},
    {"AFSDB", RRType::kAFSDB},
    {"X25", RRType::kX25},
    {"ISDN", RRType::kISDN},
    {"RT", RRType::kRT},
    {"NSAP", RRType::kNSAP},
    {"NSAP-PTR", RRType::kNSAP_PTR},
    {"SIG", RRType::kSIG},
    {"KEY", RRType::kKEY},
    {"PX", RRType::kPX},
    {"GPOS", RRType::kGPOS},
    {"AAAA", RRType::kAAAA},
    {"LOC", RRType::kLOC},
    {"NXT", RRType::kNXT},
    {"EID", RRType::kEID},
    {"NIMLOC", RRType::kNIMLOC},
    {"SRV", RRType::kSRV},
    {"ATMA", RRType::kATMA},
    {"NAPTR", RRType::kNAPTR},
    {"KX", RRType::kKX},
    {"CERT", RRType::kCERT},
    {"A6", RRType::kA6},
    {"DNAME", RRType::kDNAME},
    {"SINK", RRType::kSINK},
    {"OPT", RRType::kOPT},
    {"APL", RRType::kAPL},
    {"DS", RRType::kDS},
    {"SSHFP", RRType::kSSHFP},
    {"IPSECKEY", RRType::kIPSECKEY},
    {"RRSIG", RRType::kRRSIG},
    {"NSEC", RRType::kNSEC},
    {"DNSKEY", RRType::kDNSKEY},
    {"DHCID", RRType::kDHCID},
    {"NSEC3", RRType::kNSEC3},
    {"NSEC3PARAM", RRType::kNSEC3PARAM},
    {"TLSA", RRType::kTLSA},
    {"SMIMEA", RRType::kSMIMEA},
    {"HIP", RRType::kHIP},
    {"NINFO", RRType::kNINFO},
    {"RKEY", RRType::kRKEY},
    {"TALINK", RRType::kTALINK},
    {"CDS", RRType::kCDS},
    {"CDNSKEY", RRType::kCDNSKEY},
    {"OPENPGPKEY", RRType::kOPENPGPKEY},
    {"CSYNC", RRType::kCSYNC},
    {"ZONEMD", RRType::kZONEMD},
    {"SVCB", RRType::kSVCB},
    {"HTTPS", RRType::kHTTPS},
    {"DSYNC", RRType::kDSYNC},
    {"HHIT", RRType::kHHIT},
    {"BRID", RRType::kBRID},
    {"SPF", RRType::kSPF},
    {"UINFO", RRType::kUINFO},
    {"UID", RRType::kUID},
    {"GID", RRType::kGID},
    {"UNSPEC", RRType::kUNSPEC},
    {"NID", RRType::kNID},
    {"L32", RRType::kL32},
    {"L64", RRType::kL64},
    {"LP", RRType::kLP},
    {"EUI48", RRType::kEUI48},
    {"EUI64", RRType::kEUI64},
    {"NXNAME", RRType::kNXNAME},
    {"TKEY", RRType::kTKEY},
    {"TSIG", RRType::kTSIG},
    {"IXFR", RRType::kIXFR},
    {"AXFR", RRType::kAXFR},
    {"MAILB", RRType::kMAILB},
    {"MAILA", RRType::kMAILA},
    {"ANY", RRType::kANY},
    {"URI", RRType::kURI},
    {"CAA", RRType::kCAA},
    {"AVC", RRType::kAVC},
    {"DOA", RRType::kDOA},
    {"AMTRELAY", RRType::kAMTRELAY},
    {"RESINFO", RRType::kRESINFO},
    {"WALLET", RRType::kWALLET},
    {"CLA", RRType::kCLA},
    {"IPN", RRType::kIPN},
    {"TA", RRType::kTA},
    {"DLV", RRType::kDLV},
    {"KEYDATA", RRType::kKEYDATA},
};

/// Names by hash: each record of a zone file needs a lookup, so that a lookup must cost one probe,
/// not a search.
class TypeIndex {
 public:
  constexpr TypeIndex() {
    for (std::size_t i = 0; i < std::size(kTypeNames); ++i) {
      std::size_t slot = hash(kTypeNames[i].text);
      while (slots_[slot] != 0) slot = (slot + 1) % kSlots;
      slots_[slot] = static_cast<std::uint8_t>(i + 1);
    }
  }

  [[nodiscard]] std::optional<RRType> find(std::string_view text) const noexcept {
    for (std::size_t slot = hash(text); slots_[slot] != 0; slot = (slot + 1) % kSlots) {
      const TypeName& candidate = kTypeNames[slots_[slot] - 1];
      if (equal_ignoring_case(text, candidate.text)) return candidate.type;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kSlots = 512;  // load 0.2: nearly all names in their own slot
  static_assert(std::size(kTypeNames) < 255);

  /// Only the first octets are hashed, so that a hostile megabyte costs no more than a mnemonic.
  static constexpr std::size_t hash(std::string_view text) noexcept {
    std::uint32_t value = static_cast<std::uint32_t>(text.size());
    for (std::size_t i = 0; i < text.size() && i < 10; ++i)
      value = (value ^ static_cast<std::uint8_t>(ascii_upper(text[i]))) * 0x01000193U;
    return (value >> 16U ^ value) % kSlots;
  }

  std::array<std::uint8_t, kSlots> slots_{};
};

constexpr TypeIndex kTypeIndex;

/// Names by number for the dense part of the registry.
constexpr auto kNameOfType = [] {
  std::array<std::string_view, 265> names{};
  for (const TypeName& row : kTypeNames)
    if (static_cast<std::size_t>(row.type) < names.size())
      names[static_cast<std::size_t>(row.type)] = row.text;
  return names;
}();

std::string_view type_name(RRType type) noexcept {
  const auto value = static_cast<std::size_t>(type);
  if (value < kNameOfType.size()) return kNameOfType[value];
  for (const TypeName& row : kTypeNames)
    if (row.type == type) return row.text;
  return {};
}

/// RFC 3597 §5: `prefix` in any case and a decimal number of 16 bits.
std::optional<std::uint16_t> number_behind(std::string_view prefix,
                                           std::string_view text) noexcept {
  if (!equal_ignoring_case(text.substr(0, prefix.size()), prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  const auto value = parse_decimal(text, 65535);
  if (!value) return std::nullopt;
  return static_cast<std::uint16_t>(*value);
}

}  // namespace

std::string to_text(RRType type) {
  const std::string_view name = type_name(type);
  if (!name.empty()) return std::string(name);
  return fmt::format("TYPE{}", static_cast<std::uint16_t>(type));
}

std::string to_text(RRClass rr_class) {
  switch (rr_class) {
    case RRClass::kIN:
      return "IN";
    case RRClass::kCH:
      return "CH";
    case RRClass::kHS:
      return "HS";
    case RRClass::kNONE:
      return "NONE";
    case RRClass::kANY:
      return "ANY";
  }
  return fmt::format("CLASS{}", static_cast<std::uint16_t>(rr_class));
}

std::string to_text(Rcode rcode) {
  static constexpr std::array<std::string_view, 24> kNames = {
      "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN",  "NOTIMP",  "REFUSED", "YXDOMAIN", "YXRRSET",
      "NXRRSET", "NOTAUTH", "NOTZONE",  "DSOTYPENI", "",        "",        "",         "",
      "BADVERS", "BADKEY",  "BADTIME",  "BADMODE",   "BADNAME", "BADALG",  "BADTRUNC", "BADCOOKIE"};
  const auto value = static_cast<std::uint16_t>(rcode);
  if (value < kNames.size() && !kNames[value].empty()) return std::string(kNames[value]);
  return fmt::format("RCODE{}", value);
}

std::string tsig_error_to_text(Rcode error) {
  return error == Rcode::kBadSig ? "BADSIG" : to_text(error);
}

std::string to_text(Opcode opcode) {
  switch (opcode) {
    case Opcode::kQuery:
      return "QUERY";
    case Opcode::kIQuery:
      return "IQUERY";
    case Opcode::kStatus:
      return "STATUS";
    case Opcode::kNotify:
      return "NOTIFY";
    case Opcode::kUpdate:
      return "UPDATE";
    case Opcode::kDso:
      return "DSO";
  }
  return fmt::format("OPCODE{}", static_cast<std::uint8_t>(opcode));
}

Result<RRType> rrtype_from_text(std::string_view text) {
  if (const auto type = kTypeIndex.find(text)) return *type;
  if (const auto value = number_behind("TYPE", text)) return static_cast<RRType>(*value);
  return fail(Errc::kInvalid, "unknown type {}", quote_for_message(text));
}

Result<RRClass> rrclass_from_text(std::string_view text) {
  static constexpr struct {
    std::string_view text;
    RRClass value;
  } kNames[] = {{"IN", RRClass::kIN},  {"CH", RRClass::kCH},     {"CHAOS", RRClass::kCH},
                {"HS", RRClass::kHS},  {"HESIOD", RRClass::kHS}, {"NONE", RRClass::kNONE},
                {"ANY", RRClass::kANY}};
  for (const auto& row : kNames)
    if (equal_ignoring_case(text, row.text)) return row.value;
  if (const auto value = number_behind("CLASS", text)) return static_cast<RRClass>(*value);
  return fail(Errc::kInvalid, "unknown class {}", quote_for_message(text));
}

}  // namespace pando::dns
