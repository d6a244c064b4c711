#include "http/api/cryptokeys.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/words.h"
#include "dns/dnssec/dnskey.h"
#include "dns/mnemonics.h"
#include "dns/rdata/rdata.h"
#include "http/api/json_request.h"

namespace pando::http {

using nlohmann::json;

namespace {

constexpr std::uint16_t kSep = 1;  // RFC 4034 §2.1.1
constexpr std::uint8_t kSha256 = 2, kSha384 = 4;

struct PublishedKey {
  Bytes rdata;
  std::string text;
  dns::DnskeyFields fields;  ///< views into `rdata`
  [[nodiscard]] bool is_sep() const noexcept { return (fields.flags & kSep) != 0; }
};

std::vector<std::string> records_of(const dns::Name& zone, const std::vector<RRsetText>& sets,
                                    dns::RRType type) {
  const std::string owner = dns::to_text(zone);
  for (const RRsetText& set : sets)
    if (set.type == type && equal_but_for_case(set.owner, owner)) return set.records;
  return {};
}

/// RFC 3110 §2: the length of the exponent in one octet, or in three, then exponent and modulus.
unsigned rsa_bits(ByteView key) {
  if (key.empty()) return 0;
  const bool is_long = key[0] == 0;
  if (is_long && key.size() < 3) return 0;
  const std::size_t exponent = is_long ? load_be16(key.data() + 1) : key[0];
  const std::size_t before = exponent + (is_long ? 3 : 1);
  if (before >= key.size()) return 0;
  const ByteView modulus = key.subspan(before);
  return static_cast<unsigned>(modulus.size() * 8 - std::countl_zero(modulus[0]));
}

unsigned key_bits(const dns::DnskeyFields& key) {
  switch (key.algorithm) {
    case 13:
    case 15:
      return 256;
    case 14:
      return 384;
    case 16:
      return 456;
    default:
      return rsa_bits(key.key);
  }
}

std::vector<PublishedKey> published_keys(const dns::Name& zone,
                                         const std::vector<RRsetText>& apex) {
  std::vector<PublishedKey> keys;
  for (std::string& text : records_of(zone, apex, dns::RRType::kDNSKEY)) {
    Bytes rdata;
    if (!dns::rdata_from_text(dns::RRType::kDNSKEY, text, zone, rdata)) continue;
    keys.push_back({std::move(rdata), std::move(text), {}});
    const auto fields = dns::parse_dnskey(keys.back().rdata);
    if (fields)
      keys.back().fields = *fields;
    else
      keys.pop_back();
  }
  return keys;
}

/// A key is a CSK unless its algorithm has keys of both kinds.
std::string_view key_type(const PublishedKey& key, const std::vector<PublishedKey>& all) {
  const bool is_split = std::ranges::any_of(all, [&key](const PublishedKey& other) {
    return other.fields.algorithm == key.fields.algorithm && other.is_sep() != key.is_sep();
  });
  if (!is_split) return "csk";
  return key.is_sep() ? "ksk" : "zsk";
}

/// The algorithm of the policy `default`, as PowerDNS, its panels and IANA write it.
bool is_usual_algorithm(const json& algorithm) {
  constexpr int kP256 = 13;
  if (algorithm.is_number_integer()) return algorithm.get<std::int64_t>() == kP256;
  if (!algorithm.is_string()) return false;
  const auto& text = algorithm.get_ref<const std::string&>();
  constexpr std::string_view kNames[] = {"ECDSAP256SHA256", "ecdsa256", "ecdsap256sha256", "13"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view name) { return equal_but_for_case(text, name); });
}

bool is_usual_size(const json& bits) {
  return bits.is_number_integer() && (bits == 0 || bits == 256);
}

}  // namespace

Status check_new_key(std::string_view body) {
  const auto document = read_document(body);
  if (!document) return tl::unexpected<Error>(document.error());
  for (const char* key : {"privatekey", "content"})
    if (member(*document, key) != nullptr)
      return fail(Errc::kInvalid, "a key that is there is taken by 'pandoctl dnssec import' alone");
  const auto type = text_of(*document, "keytype");
  if (!type) return pass(type);
  if (*type != "ksk" && *type != "csk")
    return fail(Errc::kInvalid, "Invalid keytype {}: one key, a csk, signs a zone", shown(*type));
  // PowerDNS takes an absent `active` for false, and an absent `published` for true.
  const json* active = member(*document, "active");
  const json* published = member(*document, "published");
  if (active == nullptr || *active != true || (published != nullptr && *published != true))
    return fail(Errc::kInvalid, "a new key signs: 'active' is to be true, and 'published', too");
  const json* algorithm = member(*document, "algorithm");
  if (algorithm != nullptr && !is_usual_algorithm(*algorithm))
    return fail(Errc::kInvalid, "the policy 'default' makes keys of ECDSAP256SHA256, algorithm 13");
  const json* bits = member(*document, "bits");
  if (bits != nullptr && !is_usual_size(*bits))
    return fail(Errc::kInvalid, "keys of ECDSAP256SHA256 have 256 'bits'");
  return {};
}

json cryptokeys_json(const dns::Name& zone, const std::vector<RRsetText>& apex) {
  const std::vector<PublishedKey> keys = published_keys(zone, apex);
  const std::vector<std::string> cds_records = records_of(zone, apex, dns::RRType::kCDS);
  json list = json::array();
  for (const PublishedKey& key : keys) {
    const std::string_view type = key_type(key, keys);
    // Tag and algorithm name a key for as long as it is there.
    const unsigned id = (unsigned{key.fields.algorithm} << 16U) + dns::key_tag(key.rdata);
    json object{{"type", "Cryptokey"},
                {"id", id},
                {"keytype", type},
                {"active", true},
                {"published", true},
                {"flags", key.fields.flags},
                {"dnskey", key.text},
                {"algorithm", dns::mnemonic_of(dns::kDnssecAlgorithms, key.fields.algorithm)},
                {"bits", key_bits(key.fields)}};
    if (type != "zsk") {
      json ds = json::array(), cds = json::array();
      for (const std::uint8_t digest : {kSha256, kSha384}) {
        const auto rdata = dns::make_ds(zone, key.rdata, digest);
        if (!rdata) continue;
        const std::string text = dns::rdata_to_text(dns::RRType::kDS, *rdata);
        ds.push_back(text);
        if (std::ranges::find(cds_records, text) != cds_records.end()) cds.push_back(text);
      }
      object["ds"] = std::move(ds);
      if (!cds.empty()) object["cds"] = std::move(cds);
    }
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace pando::http
