#include "dns/types.h"

#include <array>
#include <optional>

#include "dns/mnemonics.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

// IANA "Resource Record (RR) TYPEs", with BIND's names.
constexpr Mnemonic kTypes[] = {
    {"A", 1},           {"NS", 2},        {"MD", 3},         {"MF", 4},       {"CNAME", 5},
    {"SOA", 6},         {"MB", 7},        {"MG", 8},         {"MR", 9},       {"NULL", 10},
    {"WKS", 11},        {"PTR", 12},      {"HINFO", 13},     {"MINFO", 14},   {"MX", 15},
    {"TXT", 16},        {"RP", 17},       {"AFSDB", 18},     {"X25", 19},     {"ISDN", 20},
    {"RT", 21},         {"NSAP", 22},     {"NSAP-PTR", 23},  {"SIG", 24},     {"KEY", 25},
    {"PX", 26},         {"GPOS", 27},     {"AAAA", 28},      {"LOC", 29},     {"NXT", 30},
    {"EID", 31},        {"NIMLOC", 32},   {"SRV", 33},       {"ATMA", 34},    {"NAPTR", 35},
    {"KX", 36},         {"CERT", 37},     {"A6", 38},        {"DNAME", 39},   {"SINK", 40},
    {"OPT", 41},        {"APL", 42},      {"DS", 43},        {"SSHFP", 44},   {"IPSECKEY", 45},
    {"RRSIG", 46},      {"NSEC", 47},     {"DNSKEY", 48},    {"DHCID", 49},   {"NSEC3", 50},
    {"NSEC3PARAM", 51}, {"TLSA", 52},     {"SMIMEA", 53},    {"HIP", 55},     {"NINFO", 56},
    {"RKEY", 57},       {"TALINK", 58},   {"CDS", 59},       {"CDNSKEY", 60}, {"OPENPGPKEY", 61},
    {"CSYNC", 62},      {"ZONEMD", 63},   {"SVCB", 64},      {"HTTPS", 65},   {"DSYNC", 66},
    {"HHIT", 67},       {"BRID", 68},     {"SPF", 99},       {"UINFO", 100},  {"UID", 101},
    {"GID", 102},       {"UNSPEC", 103},  {"NID", 104},      {"L32", 105},    {"L64", 106},
    {"LP", 107},        {"EUI48", 108},   {"EUI64", 109},    {"NXNAME", 128}, {"TKEY", 249},
    {"TSIG", 250},      {"IXFR", 251},    {"AXFR", 252},     {"MAILB", 253},  {"MAILA", 254},
    {"ANY", 255},       {"URI", 256},     {"CAA", 257},      {"AVC", 258},    {"DOA", 259},
    {"AMTRELAY", 260},  {"RESINFO", 261}, {"WALLET", 262},   {"CLA", 263},    {"IPN", 264},
    {"TA", 32768},      {"DLV", 32769},   {"KEYDATA", 65533}};

/// Names by hash: each record of a zone file needs a lookup, so that a lookup must cost one probe,
/// not a search.
class TypeIndex {
 public:
  constexpr TypeIndex() {
    for (std::size_t i = 0; i < std::size(kTypes); ++i) {
      std::size_t slot = hash(kTypes[i].text);
      while (slots_[slot] != 0) slot = (slot + 1) % kSlots;
      slots_[slot] = static_cast<std::uint8_t>(i + 1);
    }
  }

  [[nodiscard]] std::optional<RRType> find(std::string_view text) const noexcept {
    for (std::size_t slot = hash(text); slots_[slot] != 0; slot = (slot + 1) % kSlots) {
      const Mnemonic& candidate = kTypes[slots_[slot] - 1];
      if (equal_ignoring_case(text, candidate.text)) return static_cast<RRType>(candidate.value);
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kSlots = 512;  // load 0.2: nearly all names in their own slot
  static_assert(std::size(kTypes) < 255);

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
  for (const Mnemonic& row : kTypes)
    if (row.value < names.size()) names[row.value] = row.text;
  return names;
}();

std::string_view type_name(RRType type) noexcept {
  const auto value = static_cast<std::uint16_t>(type);
  return value < kNameOfType.size() ? kNameOfType[value] : mnemonic_of(kTypes, value);
}

constexpr Mnemonic kClasses[] = {{"IN", 1},     {"CH", 3},     {"CHAOS", 3}, {"HS", 4},
                                 {"HESIOD", 4}, {"NONE", 254}, {"ANY", 255}};

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
  const auto value = static_cast<std::uint16_t>(rr_class);
  const std::string_view name = mnemonic_of(kClasses, value);
  return name.empty() ? fmt::format("CLASS{}", value) : std::string(name);
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
  static constexpr std::array<std::string_view, 7> kNames = {"QUERY",  "IQUERY", "STATUS", "",
                                                             "NOTIFY", "UPDATE", "DSO"};
  const auto value = static_cast<std::uint8_t>(opcode);
  if (value < kNames.size() && !kNames[value].empty()) return std::string(kNames[value]);
  return fmt::format("OPCODE{}", value);
}

Result<RRType> rrtype_from_text(std::string_view text) {
  if (const auto type = kTypeIndex.find(text)) return *type;
  if (const auto value = number_behind("TYPE", text)) return static_cast<RRType>(*value);
  return fail(Errc::kInvalid, "unknown type {}", quote_for_message(text));
}

Result<RRClass> rrclass_from_text(std::string_view text) {
  if (const auto value = find_mnemonic(kClasses, text)) return static_cast<RRClass>(*value);
  if (const auto value = number_behind("CLASS", text)) return static_cast<RRClass>(*value);
  return fail(Errc::kInvalid, "unknown class {}", quote_for_message(text));
}

}  // namespace pando::dns
