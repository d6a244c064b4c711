#pragma once

#include <openssl/evp.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dns/dnssec/denial_fields.h"
#include "dns/dnssec/dnskey.h"
#include "dns/dnssec/nsec3_hash.h"
#include "dns/dnssec/rrsig.h"
#include "dns/encoding.h"
#include "manager/dnssec/changed_zone.h"
#include "manager/request/update_message.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager::testing {

/// An Ed25519 key, or (algorithm 16) an Ed448 one: its signatures are always the same, so that what
/// is signed twice has not changed.
class TestKey {
 public:
  explicit TestKey(std::uint8_t seed, std::uint16_t flags = 257, std::uint8_t algorithm = 15)
      : flags_(flags), algorithm_(algorithm) {
    const Bytes secret(key_octets(), seed);
    key_.reset(EVP_PKEY_new_raw_private_key(algorithm == 15 ? EVP_PKEY_ED25519 : EVP_PKEY_ED448,
                                            nullptr, secret.data(), secret.size()),
               &EVP_PKEY_free);
  }
  [[nodiscard]] std::uint8_t algorithm() const noexcept { return algorithm_; }
  [[nodiscard]] Bytes dnskey() const {
    Bytes rdata;
    append_be16(rdata, flags_);
    append(rdata, Bytes{3, algorithm_});
    std::size_t size = key_octets();
    rdata.resize(4 + size);
    EXPECT_EQ(EVP_PKEY_get_raw_public_key(key_.get(), rdata.data() + 4, &size), 1);
    return rdata;
  }
  [[nodiscard]] Bytes sign(ByteView octets) const {
    Bytes signature(2 * key_octets());
    std::size_t size = signature.size();
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free);
    EXPECT_EQ(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()), 1);
    EXPECT_EQ(EVP_DigestSign(context.get(), signature.data(), &size, octets.data(), octets.size()),
              1);
    return signature;
  }

 private:
  [[nodiscard]] std::size_t key_octets() const noexcept { return algorithm_ == 15 ? 32 : 57; }
  std::uint16_t flags_;
  std::uint8_t algorithm_;
  std::shared_ptr<EVP_PKEY> key_;
};

/// How a zone is signed.
struct Signing {
  bool nsec3 = false;
  bool opt_out = false;
  std::uint16_t iterations = 0;
  std::string salt = "-";
  std::vector<TestKey> published = {TestKey(1)};
  std::vector<TestKey> signing = {TestKey(1)};
  std::uint32_t inception = 1'600'000'000;
  std::uint32_t expiration = 1'800'000'000;
};
inline constexpr std::uint64_t kSigningTime = 1'700'000'000;

/// Records by their text.
using RecordTexts = std::map<std::string, zone::Record>;

inline void put(RecordTexts& out, zone::Record one) {
  one.owner = dns::Name(one.owner).folded();
  std::string text = fmt::format("{} {} {}", to_text(one.owner), to_text(one.type),
                                 dns::rdata_to_text(one.type, one.rdata));
  out.insert_or_assign(std::move(text), std::move(one));
}

/// Everything a zone has, signatures too.
inline RecordTexts all_records(const zone::ZoneView& zone) {
  RecordTexts out;
  auto cursor = zone.begin();
  while (const zone::RecordView found = cursor.next()) {
    const dns::Name owner = zone.owner_of(found);
    found.for_each_rrset([&](const zone::RRsetView& rrset) {
      rrset.for_each_rdata([&](ByteView rdata) {
        put(out, {owner, rrset.type(), rrset.ttl(), Bytes(rdata.begin(), rdata.end())});
      });
      rrset.for_each_signature([&](ByteView rest) {
        Bytes rdata;
        append_be16(rdata, static_cast<std::uint16_t>(rrset.type()));
        append(rdata, rest);
        put(out, {owner, dns::RRType::kRRSIG, rrset.ttl(), std::move(rdata)});
      });
    });
  }
  return out;
}

/// Signs zones in the simplest way: from the whole list of their records.
class ZoneSigner {
 public:
  ZoneSigner(const std::vector<std::string>& lines, const Signing& how) : how_(how) {
    for (const std::string& line : lines) add(record(line));
    for (const TestKey& key : how.published)
      add({name("@"), dns::RRType::kDNSKEY, {3600}, key.dnskey()});
    how.nsec3 ? add_nsec3() : add_nsec();
    add_signatures();
  }
  [[nodiscard]] const RecordTexts& records() const noexcept { return out_; }

 private:
  using RRset = TouchedNames::RRset;
  using Names = std::map<dns::Name, TouchedNames::RRsets, dns::CanonicalLess>;

  void add(const zone::Record& one) {
    RRset& rrset = names_[dns::Name(one.owner)][one.type];
    rrset.ttl = one.ttl;
    TouchedNames::insert(rrset, one.type, one.rdata);
  }
  void add(const dns::Name& owner, dns::RRType type, const std::string& rdata) {
    zone::Record one{owner, type, {300}, {}};
    EXPECT_TRUE(dns::rdata_from_text(type, rdata, name("@"), one.rdata).has_value()) << rdata;
    add(one);
  }
  [[nodiscard]] bool has(const dns::Name& owner, dns::RRType type) const {
    const auto found = names_.find(owner);
    return found != names_.end() && found->second.contains(type);
  }
  [[nodiscard]] bool is_cut(const dns::Name& owner) const {
    return !(owner == name("@")) && has(owner, dns::RRType::kNS);
  }
  [[nodiscard]] bool is_occluded(const dns::Name& owner) const {
    for (dns::NameView above = owner.view(); !(above == name("@"));) {
      above = above.parent();
      if (is_cut(dns::Name(above)) || has(dns::Name(above), dns::RRType::kDNAME)) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_signed(const dns::Name& owner, dns::RRType type) const {
    if (type == dns::RRType::kNSEC3) return true;
    if (is_occluded(owner)) return false;
    return !is_cut(owner) || type == dns::RRType::kDS || type == dns::RRType::kNSEC;
  }
  /// The types that NSEC and NSEC3 tell of.
  [[nodiscard]] std::string types_at(const dns::Name& owner) const {
    std::string text;
    bool any_signed = false;
    for (const auto& [type, rrset] : names_.at(owner)) {
      if (!is_signed(owner, type) && type != dns::RRType::kNS) continue;
      text += " " + to_text(type);
      any_signed = any_signed || is_signed(owner, type);
    }
    return text + (any_signed ? " RRSIG" : "");
  }
  void add_nsec() {
    std::vector<dns::Name> chain;
    for (const auto& [owner, rrsets] : names_)
      if (!is_occluded(owner)) chain.push_back(owner);
    for (std::size_t i = 0; i < chain.size(); ++i)
      add(chain[i], dns::RRType::kNSEC,
          to_text(chain[(i + 1) % chain.size()]) + types_at(chain[i]) +
              (is_cut(chain[i]) && !has(chain[i], dns::RRType::kDS) ? " RRSIG NSEC" : " NSEC"));
  }

  [[nodiscard]] std::string hash_of(const dns::Name& owner) const {
    const Bytes salt = how_.salt == "-" ? Bytes() : dns::hex_decode(how_.salt).value();
    dns::Nsec3Hash hash{};
    dns::Nsec3Hasher hasher;
    EXPECT_TRUE(hasher.hash(owner, how_.iterations, salt, hash));
    std::string text;
    dns::append_base32hex(text, hash);
    return text;
  }
  void add_nsec3() {
    const std::string parameters = fmt::format("{} {}", how_.iterations, how_.salt);
    add(name("@"), dns::RRType::kNSEC3PARAM, "1 0 " + parameters);
    std::map<std::string, std::string> chain;  // types by hash
    for (const auto& [owner, rrsets] : names_) {
      if (is_occluded(owner)) continue;
      if (how_.opt_out && is_cut(owner) && !has(owner, dns::RRType::kDS)) continue;
      chain[hash_of(owner)] = types_at(owner);
      for (dns::NameView above = owner.view(); !(above == name("@")); above = above.parent())
        chain.emplace(hash_of(dns::Name(above)), "");
    }
    for (auto at = chain.begin(); at != chain.end(); ++at) {
      const auto next = std::next(at) == chain.end() ? chain.begin() : std::next(at);
      add(name(at->first), dns::RRType::kNSEC3,
          fmt::format("1 {} {} {}{}", how_.opt_out ? 1 : 0, parameters, next->first, at->second));
    }
  }

  void add_signatures() {
    for (const auto& [owner, rrsets] : names_)
      for (const auto& [type, rrset] : rrsets) {
        for (const Bytes& rdata : rrset.rdatas) put(out_, {owner, type, rrset.ttl, rdata});
        if (!is_signed(owner, type)) continue;
        for (const TestKey& key : how_.signing)
          put(out_, {owner, dns::RRType::kRRSIG, rrset.ttl, signature(owner, type, rrset, key)});
      }
  }
  [[nodiscard]] Bytes signature(const dns::Name& owner, dns::RRType type, const RRset& rrset,
                                const TestKey& key) const {
    Bytes rdata;
    append_be16(rdata, static_cast<std::uint16_t>(type));
    append(rdata, Bytes{key.algorithm(), dns::rrsig_labels(owner)});
    for (const std::uint32_t value : {rrset.ttl.seconds, how_.expiration, how_.inception})
      append_be32(rdata, value);
    append_be16(rdata, dns::key_tag(key.dnskey()));
    append(rdata, name("@").view().bytes());
    append(rdata,
           key.sign(dns::signed_octets(dns::parse_rrsig(rdata).value(), owner, rrset.rdatas)));
    return rdata;
  }

  const Signing& how_;
  Names names_;
  RecordTexts out_;
};

inline RecordTexts sign(const std::vector<std::string>& lines, const Signing& how) {
  return ZoneSigner(lines, how).records();
}

/// The update that makes the one zone of the other: all that goes, then all that comes.
inline UpdateMessage difference(const RecordTexts& before, const RecordTexts& after) {
  UpdateMessage message;
  message.zone = {name("@"), dns::RRType::kSOA, dns::RRClass::kIN};
  for (const auto& [text, one] : before)
    if (!after.contains(text))
      message.updates.push_back(
          {dns::Name(one.owner), one.type, dns::RRClass::kNONE, 0, one.rdata, true});
  for (const auto& [text, one] : after) {
    const auto had = before.find(text);
    if (had == before.end() || had->second.ttl != one.ttl)
      message.updates.push_back(
          {dns::Name(one.owner), one.type, dns::RRClass::kIN, one.ttl.seconds, one.rdata, true});
  }
  return message;
}

}  // namespace pando::manager::testing
