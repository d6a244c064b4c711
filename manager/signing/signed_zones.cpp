#include "manager/signing/signed_zones.h"

#include <algorithm>
#include <asio/post.hpp>
#include <set>
#include <utility>

#include "dns/dnssec/dnskey.h"
#include "dns/folded_key.h"
#include "dns/rdata/rdata.h"
#include "ipc/log.h"
#include "manager/journal/record/journal_payload.h"

namespace pando::manager {

namespace {

/// Zones whose keys are read by one task of the pool: the first zones need not wait for the last.
constexpr std::size_t kMaxTogether = 1'000;

bool signs_any(const config::ZoneTable& zones) {
  return std::ranges::any_of(zones.options(), &config::ZoneOptions::is_signed_here);
}

bool same_signing(const ZoneSigner::Options& a, const ZoneSigner::Options& b) noexcept {
  return a.validity == b.validity && a.serial_policy == b.serial_policy && a.denial == b.denial;
}

/// RFC 9276 §3.1: without iterations and salt. A zone's name can be too long for NSEC3: an error
/// would leave such a zone without new signatures.
zone::SigningDenial denial_of(config::Nsec3Use use, dns::NameView zone) {
  if (use == config::Nsec3Use::kOff || !zone::can_have_nsec3(zone)) return {};
  return {true, use == config::Nsec3Use::kOptOut};
}

}  // namespace

void SignedZones::configure(const RuntimePtr& runtime, const std::vector<dns::Name>* only) {
  const config::Settings& settings = runtime->settings;
  journal_ = settings.store.journal;
  is_configured_ = true;
  std::set<std::string> gone;
  if (only != nullptr) {
    for (const dns::Name& name : *only) {
      const auto index = settings.zones.find(name);
      if (index && settings.zones[*index].options->is_signed_here())
        take(settings, settings.zones[*index]);
      else
        gone.insert(dns::folded_key(name));
    }
  } else {
    for (const auto& [key, zone] : zones_) {
      const auto* options = settings.zones.options_of(zone.name);
      if (options == nullptr || !options->is_signed_here()) gone.insert(key);
    }
    if (signs_any(settings.zones))
      for (std::size_t i = 0; i < settings.zones.size(); ++i)
        if (settings.zones[i].options->is_signed_here()) take(settings, settings.zones[i]);
  }
  for (const std::string& key : gone) forget(key);
  read_unread();
}

void SignedZones::take(const config::Settings& settings, const config::ZoneRef& zone) {
  const auto policy = settings.dnssec_policy(zone.options->dnssec);
  if (!policy) return;  // load() has refused such a name
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(policy->validity);
  const ZoneSigner::Options signing{static_cast<std::uint64_t>(seconds.count()),
                                    zone.options->serial_policy,
                                    denial_of(policy->nsec3, zone.name)};
  Zone& known = zones_[dns::folded_key(zone.name)];
  const bool has_other_times =
      known.signer && *known.signer && !same_signing(known.signing, signing);
  known.name = dns::Name(zone.name);
  known.algorithm = policy->algorithm;
  known.signing = signing;
  if (!has_other_times) return;
  known.signer = std::make_shared<const ZoneSigner>(known.name, (**known.signer)->keys(), signing);
  if (ready_) ready_(known.name);
}

/// Changes that wait go on: the zone is not signed here any more.
void SignedZones::forget(const std::string& key) {
  auto node = zones_.extract(key);
  if (!node) return;
  for (const Known& known : node.mapped().waiting) known(nullptr);
}

WantedKeys SignedZones::wanted_keys(const Zone& zone) const {
  const zone::ZoneView served = committer_.current().zone_at(zone.name);
  const bool is_signed = served && served.loaded() && served.denial() != zone::Denial::kUnsigned;
  return {zone.name, zone.algorithm, zone.signing, is_signed};
}

/// So many unusable keys are tried each time, in turn.
void SignedZones::retry(std::chrono::steady_clock::time_point now) {
  if (zones_.empty() || now < next_retry_) return;
  next_retry_ = now + kRetry;
  std::vector<WantedKeys> wanted;
  auto at = zones_.upper_bound(retried_);
  for (std::size_t i = 0; i < zones_.size() && wanted.size() < kMaxTogether; ++i, ++at) {
    if (at == zones_.end()) at = zones_.begin();
    if (!at->second.signer || *at->second.signer) continue;
    wanted.push_back(wanted_keys(at->second));
    retried_ = at->first;
  }
  read(std::move(wanted));
}

void SignedZones::read_unread() {
  std::vector<WantedKeys> wanted;
  for (const auto& [key, zone] : zones_) {
    if (zone.signer) continue;
    wanted.push_back(wanted_keys(zone));
    if (wanted.size() == kMaxTogether) break;
  }
  read(std::move(wanted));
}

/// One task at a time: the list of signed zones has one writer.
void SignedZones::read(std::vector<WantedKeys> wanted) {
  if (is_reading_ || stopped_ || wanted.empty()) return;
  is_reading_ = true;
  asio::post(pool_, [this, wanted = std::move(wanted), journal = journal_] {
    auto opened = open_zone_keys(files_, journal, wanted);
    asio::post(io_, [this, wanted, opened = std::move(opened)]() mutable {
      is_reading_ = false;
      if (!stopped_) keys_read(wanted, std::move(opened));
    });
  });
}

void SignedZones::keys_read(const std::vector<WantedKeys>& wanted,
                            std::vector<Result<ZoneSignerPtr>>&& opened) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto found = zones_.find(dns::folded_key(wanted[i].zone));
    if (found == zones_.end() || !same_signing(found->second.signing, wanted[i].signing)) continue;
    set_signer(found->second, std::move(opened[i]));
  }
  read_unread();
}

void SignedZones::set_signer(Zone& zone, Result<ZoneSignerPtr>&& signer) {
  const std::string name = dns::to_text(zone.name);
  const bool had_failed = zone.signer && !*zone.signer;
  if (!signer) {
    const std::string reason = signer.error().text;
    signer = fail(Errc::kUnsupported, "the zone's keys cannot be used: {}", reason);
    if (!had_failed || zone.signer->error().text != signer.error().text)
      log::error("zone_keys_unusable", "zone", name, "reason", reason);
  } else if (had_failed) {
    log::info("zone_keys_usable", "zone", name);
  }
  zone.signer = std::move(signer);
  const dns::Name ready = zone.name;
  const Result<ZoneSignerPtr> known = *zone.signer;
  for (const Known& waiting : std::exchange(zone.waiting, {})) waiting(known);
  if (known && ready_) ready_(ready);
}

Result<ZoneSignerPtr> SignedZones::signer_of(dns::NameView zone) const {
  if (!is_configured_ && is_signed_here(committer_.current().zone_at(zone)))
    return fail(Errc::kUnsupported, "the zone's keys are not read yet");
  if (zones_.empty()) return nullptr;
  const auto found = zones_.find(dns::folded_key(zone));
  if (found == zones_.end()) return nullptr;
  if (!found->second.signer) return fail(Errc::kUnsupported, "the zone's keys are not read yet");
  return *found->second.signer;
}

void SignedZones::when_known(dns::NameView zone, Known known) {
  const auto found = zones_.find(dns::folded_key(zone));
  if (found != zones_.end() && !found->second.signer)
    return found->second.waiting.push_back(std::move(known));
  known(signer_of(zone));
}

std::vector<std::string> SignedZones::ds_records(dns::NameView zone) const {
  constexpr std::uint8_t kSha256 = 2;
  std::vector<std::string> records;
  const auto signer = signer_of(zone);
  if (!signer || !*signer || !(*signer)->has_signed(committer_.current().zone_at(zone)))
    return records;
  const zone::SigningKeys& keys = (*signer)->keys();
  for (const dns::SigningKey& key : keys.all())
    if (keys.signs(key, dns::RRType::kDNSKEY))
      records.push_back(
          dns::rdata_to_text(dns::RRType::kDS, *dns::make_ds(zone, key.dnskey(), kSha256)));
  return records;
}

std::string SignedZones::problem(dns::NameView zone) const {
  if (zones_.empty()) return {};
  const auto found = zones_.find(dns::folded_key(zone));
  if (found == zones_.end() || !found->second.signer || *found->second.signer) return {};
  return found->second.signer->error().text;
}

}  // namespace pando::manager
