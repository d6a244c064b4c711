#include "zone/dnssec/set_verifier.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "dns/rdata/rdata.h"

namespace pando::zone {

using dns::RRType;

namespace {

/// Copies the views into `out`, whose elements keep their memory.
class Copies {
 public:
  explicit Copies(std::vector<Bytes>& out) noexcept : out_(out) {}
  Bytes& next() {
    if (used_ == out_.size()) out_.emplace_back();
    out_[used_].clear();
    return out_[used_++];
  }
  void finish() { out_.resize(used_); }

 private:
  std::vector<Bytes>& out_;
  std::size_t used_ = 0;
};

void copy_rdatas(const RRsetView& set, std::vector<Bytes>& out) {
  Copies copies(out);
  set.for_each_rdata([&](ByteView rdata) { append(copies.next(), rdata); });
  copies.finish();
  // RFC 4034 §6.3
  const auto before = [type = set.type()](const Bytes& a, const Bytes& b) {
    return dns::compare_rdata_canonical(type, a, b) < 0;
  };
  if (!std::is_sorted(out.begin(), out.end(), before)) std::sort(out.begin(), out.end(), before);
}

/// The signature with the latest expiration comes first, because it decides how long the set is
/// valid.
void copy_signatures(const RRsetView& set, std::uint64_t now, std::vector<Bytes>& out) {
  Copies copies(out);
  set.for_each_signature([&](ByteView rest) {
    Bytes& rdata = copies.next();
    append_be16(rdata, static_cast<std::uint16_t>(set.type()));
    append(rdata, rest);
  });
  copies.finish();
  if (out.size() < 2) return;
  const auto end_of = [now](const Bytes& rdata) {
    const auto rrsig = dns::parse_rrsig(rdata);
    return rrsig ? dns::whole_time(rrsig->expiration, now) : 0;
  };
  std::stable_sort(out.begin(), out.end(), [&](const Bytes& a, const Bytes& b) {
    return end_of(a) > end_of(b);
  });
}

std::string time_text(std::uint64_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace

SetVerifier::SetVerifier(const ZoneView& zone, std::uint64_t now, unsigned one_in)
    : apex_(zone.apex()), now_(now), one_in_(one_in) {
  read_keys(zone);
  require_algorithms(zone);
}

void SetVerifier::read_keys(const ZoneView& zone) {
  zone.apex_record().find(RRType::kDNSKEY).for_each_rdata([&](ByteView rdata) {
    const auto fields = dns::parse_dnskey(rdata);
    if (!fields || !fields->is_zone_key()) return;
    keys_.push_back({dns::key_tag(rdata), fields->algorithm, fields->is_revoked(),
                     dns::SignatureVerifier::make(*fields)});
  });
}

bool SetVerifier::has_key_of(std::uint8_t algorithm) const noexcept {
  return std::any_of(keys_.begin(), keys_.end(), [&](const Key& key) {
    return key.algorithm == algorithm && !key.revoked;
  });
}

void SetVerifier::require_algorithms(const ZoneView& zone) {
  zone.soa().for_each_signature([&](ByteView rest) {
    if (!rest.empty() && has_key_of(rest[0])) required_.insert(rest[0]);
  });
}

std::string SetVerifier::obstacle() const {
  if (keys_.empty()) return fmt::format("{} has no DNSKEY that is a zone key", to_text(apex_));
  if (required_.empty())
    return fmt::format("{} SOA has no RRSIG of an algorithm of the zone's keys", to_text(apex_));
  for (const std::uint8_t algorithm : required_)
    if (!dns::is_supported_algorithm(algorithm))
      return fmt::format("{} is signed with algorithm {}, which cannot be verified here",
                         to_text(apex_), algorithm);
  return {};
}

std::string SetVerifier::check(const dns::Name& owner, const RRsetView& set) {
  if (set.signature_count() == 0)
    return fmt::format("{} {} has no RRSIG", to_text(owner), to_text(set.type()));
  copy_rdatas(set, rdatas_);
  copy_signatures(set, now_, signatures_);
  tries_ = 0;
  for (const std::uint8_t algorithm : required_)
    if (auto fault = check_algorithm(owner, set, algorithm); !fault.empty()) return fault;
  return {};
}

std::string SetVerifier::check_algorithm(const dns::Name& owner, const RRsetView& set,
                                         std::uint8_t algorithm) {
  const auto what = [&] { return fmt::format("{} {}", to_text(owner), to_text(set.type())); };
  std::string first;
  for (const Bytes& rdata : signatures_) {
    const auto rrsig = dns::parse_rrsig(rdata);
    if (!rrsig || rrsig->algorithm != algorithm) continue;
    std::string problem = problem_of(*rrsig, owner);
    if (problem.empty()) problem = verify(*rrsig, owner);
    if (problem.empty()) {
      note_end(*rrsig, owner);
      return {};
    }
    if (first.empty())
      first = fmt::format("{}: RRSIG by key {}, algorithm {}, {}", what(), rrsig->key_tag,
                          algorithm, problem);
  }
  return first.empty() ? fmt::format("{} has no RRSIG of algorithm {}", what(), algorithm) : first;
}

/// RFC 4035 §5.3.1, but for the key; empty = no problem.
std::string SetVerifier::problem_of(const dns::RrsigFields& rrsig, const dns::Name& owner) {
  if (!(rrsig.signer == apex_)) return fmt::format("names {} as signer", to_text(rrsig.signer));
  if (rrsig.labels != dns::rrsig_labels(owner))
    return fmt::format("counts {} labels", rrsig.labels);
  if (rrsig.is_valid_at(now_)) return {};
  const bool is_early = dns::Serial{rrsig.inception}.ahead_of(
      dns::Serial{static_cast<std::uint32_t>(now_)});
  return is_early ? "begins at " + time_text(dns::whole_time(rrsig.inception, now_))
                  : "expired at " + time_text(dns::whole_time(rrsig.expiration, now_));
}

std::string SetVerifier::verify(const dns::RrsigFields& rrsig, const dns::Name& owner) {
  octets_.clear();
  bool has_key = false;
  const bool is_left_out = !(owner == apex_) && met_++ % one_in_ != 0;
  for (Key& key : keys_) {
    if (key.tag != rrsig.key_tag || key.algorithm != rrsig.algorithm) continue;
    // RFC 5011 §2.1: signatures by a revoked key do not count.
    if (key.revoked) continue;
    has_key = true;
    if (is_left_out) return {};
    if (++tries_ > kMaxTriesPerSet) return "is one of too many to try";
    if (octets_.empty()) dns::append_signed_octets(rrsig, owner, rdatas_, octets_);
    ++verified_;
    if (key.verifier && key.verifier->verify(octets_, rrsig.signature)) return {};
  }
  if (!has_key) return "is by no key of the zone";
  return "does not verify";
}

void SetVerifier::note_end(const dns::RrsigFields& rrsig, const dns::Name& owner) {
  const std::uint64_t end = dns::whole_time(rrsig.expiration, now_);
  if (!first_end_ || end < first_end_->at) first_end_ = SignatureEnd{owner, rrsig.covered, end};
}

}  // namespace pando::zone
