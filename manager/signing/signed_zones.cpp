#include "manager/signing/signed_zones.h"

#include <algorithm>
#include <set>
#include <utility>

#include "dns/dnssec/dnskey.h"
#include "dns/folded_key.h"
#include "dns/mnemonics.h"
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

std::uint64_t seconds_of(const config::Duration& duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

/// RFC 9276 §3.1: without iterations and salt. A zone's name can be too long for NSEC3: an error
/// would leave such a zone without new signatures.
zone::SigningDenial denial_of(config::Nsec3Use use, dns::NameView zone) {
  if (use == config::Nsec3Use::kOff || !zone::can_have_nsec3(zone)) return {};
  return {true, use == config::Nsec3Use::kOptOut};
}

void log_unwritten(const dns::Name& zone, const Status& done) {
  if (!done)
    log::error("signing_facts_not_written", "zone", dns::to_text(zone), "reason",
               done.error().text);
}

/// 0: never.
std::uint64_t earlier(std::uint64_t a, std::uint64_t b) noexcept {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

void SignedZones::configure(const RuntimePtr& runtime, const std::vector<dns::Name>* only) {
  const config::Settings& settings = runtime->settings;
  folders_.set_journal(settings.store.journal);
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
  has_configured_ = true;
  read_unread();
}

void SignedZones::take(const config::Settings& settings, const config::ZoneRef& zone) {
  const auto policy = settings.dnssec_policy(zone.options->dnssec);
  if (!policy) return;  // load() has refused such a name
  ZoneSigner::Options signing;
  signing.validity = seconds_of(policy->validity);
  signing.serial_policy = zone.options->serial_policy;
  signing.denial = denial_of(policy->nsec3, zone.name);
  signing.refresh = seconds_of(policy->refresh_time());
  const SigningWaits waits{seconds_of(policy->propagation), seconds_of(policy->parent_ds_ttl),
                           policy->cds, policy->rolls == config::KeyRolls::kAuto};
  const auto [at, is_new] = zones_.try_emplace(dns::folded_key(zone.name));
  Zone& known = at->second;
  const KeyLayout layout{policy->algorithm, policy->keys == config::PolicyKeys::kKskZsk};
  const bool is_other = !is_new && !(known.signing == signing && known.waits == waits &&
                                     known.layout == layout && known.ds_check == policy->ds_check);
  known.name = dns::Name(zone.name);
  known.layout = layout;
  known.signing = signing;
  known.waits = waits;
  known.may_make_key = policy->make_keys;
  known.ds_check = policy->ds_check;
  // A zone that a reload adds was not signed here a moment ago, so what was seen of it long ago is
  // no reason to wait for less.
  if (is_new && has_configured_)
    folders_.run(
        [name = known.name](Files& files, const std::string& journal) {
          return clear_signing_facts(files, journal, name);
        },
        [name = known.name](const Status& done) { log_unwritten(name, done); });
  if (is_other && known.opened && *known.opened) update_signer(known);
}

/// Changes that wait go on: the zone is not signed here any more.
void SignedZones::forget(const std::string& key) {
  const auto found = zones_.find(key);
  if (found == zones_.end()) return;
  set_due(found->second, 0);
  auto node = zones_.extract(found);
  const Zone& zone = node.mapped();
  for (const Known& known : zone.waiting) known(nullptr);
}

void SignedZones::check(std::chrono::steady_clock::time_point now) {
  if (clock_.check()) begin_waits_anew();
  while (!due_.empty() && due_.begin()->first <= clock_.now()) {
    const auto found = zones_.find(due_.begin()->second);
    due_.erase(due_.begin());
    if (found == zones_.end()) continue;
    found->second.until = 0;
    if (found->second.opened && *found->second.opened) update_signer(found->second);
  }
  // So many unusable keys are tried each time, in turn.
  if (zones_.empty() || now < next_retry_) return;
  next_retry_ = now + kRetry;
  std::vector<WantedKeys> wanted;
  const zone::StoreView version = committer_.current();
  auto at = zones_.upper_bound(retried_);
  for (std::size_t i = 0; i < zones_.size() && wanted.size() < kMaxTogether; ++i, ++at) {
    if (at == zones_.end()) at = zones_.begin();
    const Zone& zone = at->second;
    const bool has_failed = zone.opened && !*zone.opened;
    const WantedKeys keys = zone.wanted_keys(version.zone_at(zone.name));
    if (!has_failed && !(zone.awaits_source && keys.is_known)) continue;
    wanted.push_back(keys);
    retried_ = at->first;
  }
  read(std::move(wanted));
}

void SignedZones::read_unread() {
  std::vector<WantedKeys> wanted;
  const zone::StoreView version = committer_.current();
  for (const auto& [key, zone] : zones_) {
    if (zone.opened || zone.awaits_source) continue;
    wanted.push_back(zone.wanted_keys(version.zone_at(zone.name)));
    if (wanted.size() == kMaxTogether) break;
  }
  read(std::move(wanted));
}

void SignedZones::read(std::vector<WantedKeys> wanted) {
  if (is_reading_ || folders_.stopped() || wanted.empty()) return;
  is_reading_ = true;
  folders_.run(
      [wanted](Files& files, const std::string& journal) {
        return open_zone_keys(files, journal, wanted);
      },
      [this, wanted](std::vector<Result<OpenedKeys>>&& opened) {
        is_reading_ = false;
        keys_read(wanted, std::move(opened));
      });
}

void SignedZones::keys_read(const std::vector<WantedKeys>& wanted,
                            std::vector<Result<OpenedKeys>>&& opened) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (Zone* const zone = find(wanted[i].zone)) set_opened(*zone, std::move(opened[i]));
  read_unread();
}

void SignedZones::set_opened(Zone& zone, Result<OpenedKeys>&& opened) {
  const std::string name = dns::to_text(zone.name);
  const bool had_failed = zone.opened && !*zone.opened;
  if (opened && opened->awaits_source) {
    zone.opened.reset();
    const zone::ZoneView served = committer_.current().zone_at(zone.name);
    zone.awaits_source = !zone.wanted_keys(served).is_known;  // it may have come meanwhile
    return;
  }
  if (!opened) {
    const std::string reason = opened.error().text;
    opened = fail(Errc::kUnsupported, "the zone's keys cannot be used: {}", reason);
    const bool is_old = had_failed && zone.opened->error().text == opened.error().text;
    constexpr std::uint64_t kRepeatAfter = 86400;
    if (!is_old || now() >= zone.told_at + kRepeatAfter) {
      zone.told_at = now();
      log::error("zone_keys_unusable", "zone", name, "reason", reason);
    }
    if (unusable_) unusable_(zone.name, zone.signing.refresh);
  } else if (had_failed) {
    log::info("zone_keys_usable", "zone", name);
  }
  zone.opened = std::move(opened);
  update_signer(zone);
}

/// Makes the zone's signer from its keys and its stage, for those who wait for it and from now on.
void SignedZones::update_signer(Zone& zone) {
  const SigningState state = state_of(zone);
  if (*zone.opened) {
    set_stage(zone, state);
    // A stage does not begin by a clock that nobody trusts.
    const std::uint64_t until = earlier(state.until, state.roll.until);
    set_due(zone, clock_doubt(zone).empty() ? until : now() + kRetry.count());
    zone.tell_layout();
  }
  zone.make_signer(state);
  const dns::Name name = zone.name;
  const Result<ZoneSignerPtr> known = signer_of(name);
  for (const Known& waiting : std::exchange(zone.waiting, {})) waiting(known);
  if (zone.opened->has_value() && ready_) ready_(name);
}

/// The first stage of a zone is no news: a start finds those of all zones.
void SignedZones::set_stage(Zone& zone, const SigningState& state) {
  const std::optional<SigningStage> before = std::exchange(zone.stage, state.stage);
  if (before && *before != state.stage)
    log::info("signing_stage", "zone", dns::to_text(zone.name), "stage", to_text(state.stage),
              "until", state.until);
}

SignedZones::Counts SignedZones::counts() const {
  Counts counts;
  for (const auto& [key, zone] : zones_) {
    counts.unusable += zone.opened && !*zone.opened ? 1 : 0;
    counts.ds_wanted += zone.stage == SigningStage::kDsWanted ? 1 : 0;
    counts.no_ds_wanted += zone.stage == SigningStage::kNoDsWanted ? 1 : 0;
  }
  counts.zones = zones_.size();
  return counts;
}

/// 0: no time is awaited.
void SignedZones::set_due(Zone& zone, std::uint64_t until) {
  const std::string key = dns::folded_key(zone.name);
  if (zone.until != 0) due_.erase({zone.until, key});
  zone.until = until;
  if (until != 0) due_.insert({until, key});
}

SignedZones::Zone* SignedZones::find(dns::NameView zone) {
  const auto found = zones_.find(dns::folded_key(zone));
  return found == zones_.end() ? nullptr : &found->second;
}

const SignedZones::Zone* SignedZones::find(dns::NameView zone) const {
  if (zones_.empty()) return nullptr;
  const auto found = zones_.find(dns::folded_key(zone));
  return found == zones_.end() ? nullptr : &found->second;
}

bool SignedZones::has(dns::NameView zone) const { return find(zone) != nullptr; }

std::string SignedZones::clock_doubt(const Zone& zone) const {
  if (zone.is_time_right) return {};
  const auto last = ZoneSigner::last_signature(committer_.current().zone_at(zone.name), now());
  std::string doubt = clock_.doubt(last.made, last.end);
  zone.is_time_right = last.made != 0 && doubt.empty();
  return doubt;
}

Result<ZoneSignerPtr> SignedZones::signer_of(dns::NameView zone) const {
  if (!is_configured_ && is_signed_here(committer_.current().zone_at(zone)))
    return fail(Errc::kUnsupported, "the zone's keys are not read yet");
  const Zone* const found = find(zone);
  if (found == nullptr) return nullptr;
  if (!found->signer) {
    const zone::ZoneView served = committer_.current().zone_at(zone);
    // Nothing signed is served, so a change needs no signature until the zone is signed as a whole.
    if (served && served.loaded() && !has_signers_records(served)) return nullptr;
    return fail(Errc::kUnsupported, "the zone's keys are not read yet");
  }
  if (!*found->signer) return *found->signer;
  if (!**found->signer) {
    const zone::ZoneView served = committer_.current().zone_at(zone);
    if (unsigning(zone) && served && served.denial() != zone::Denial::kUnsigned)
      return fail(Errc::kUnsupported, "the zone is being unsigned");
    return nullptr;
  }
  if (std::string doubt = clock_doubt(*found); !doubt.empty())
    return fail(Errc::kUnsupported, "{}", doubt);
  return *found->signer;
}

std::optional<config::SerialPolicy> SignedZones::unsigning(dns::NameView zone) const {
  const Zone* const found = find(zone);
  if (found == nullptr || state_of(*found).stage != SigningStage::kUnsigning) return std::nullopt;
  return found->signing.serial_policy;
}

bool SignedZones::begin_anew(const dns::Name& zone, std::function<void(const Status&)> then) {
  const SigningFacts* const facts = facts_of(zone);
  if (facts == nullptr || *facts == facts_of_new_start(*facts)) return false;
  edit_facts(zone, [](SigningFacts& known) { known = facts_of_new_start(known); },
             std::move(then));
  return true;
}

void SignedZones::when_known(dns::NameView zone, bool is_signed, Known known) {
  Zone* const found = find(zone);
  if (found == nullptr) return known(signer_of(zone));
  const bool was_signed = found->is_source_signed.value_or(false);
  found->is_source_signed = is_signed;
  const bool has_failed = found->opened && !*found->opened;
  if (found->signer && !(has_failed && was_signed != is_signed)) return known(signer_of(zone));
  found->waiting.push_back(std::move(known));
  found->awaits_source = false;
  if (!has_failed) return read_unread();
  // Signatures of the last source may be the reason for which the zone has no key.
  found->signer.reset();
  next_retry_ = {};
  read({found->wanted_keys(committer_.current().zone_at(zone))});
}

const SigningFacts* SignedZones::facts_of(dns::NameView zone) const {
  const Zone* const found = find(zone);
  return found != nullptr && found->opened && *found->opened ? &(*found->opened)->facts : nullptr;
}

SigningState SignedZones::state_of(const Zone& zone) const {
  return zone.state(clock_doubt(zone).empty() ? now() : 0);
}

SignedZones::Wanted SignedZones::wanted(dns::NameView zone) const {
  const Zone* const found = find(zone);
  return found == nullptr ? Wanted() : Wanted{found->layout, found->waits, found->ds_check};
}

SigningState SignedZones::state_of(dns::NameView zone) const {
  const Zone* const found = find(zone);
  return found == nullptr ? SigningState() : state_of(*found);
}

void SignedZones::edit_facts(const dns::Name& zone, EditFacts edit, Done done) {
  folders_.run(
      [zone, edit = std::move(edit)](Files& files, const std::string& journal) {
        return edit_signing_facts(files, journal, zone, edit);
      },
      [this, zone, done = std::move(done)](const Result<SigningFacts>& facts) {
        if (facts && !folders_.stopped()) set_facts(zone, *facts);
        log_unwritten(zone, status_of(facts));
        if (done) done(status_of(facts));
      });
}

void SignedZones::change_folder(const dns::Name& zone, FolderWork work, Done done, Done before) {
  const Zone* const found = find(zone);
  if (found == nullptr) return done(fail(Errc::kNotFound, "the zone is not signed here"));
  struct Changed {
    Status status;
    std::vector<Result<OpenedKeys>> opened;
  };
  folders_.run(
      [wanted = found->wanted_keys(committer_.current().zone_at(zone)),
       work = std::move(work)](Files& files, const std::string& journal) {
        Status status = work(files, journal);
        return Changed{std::move(status), open_zone_keys(files, journal, {wanted})};
      },
      [this, zone, done = std::move(done), before = std::move(before)](Changed&& changed) {
        if (before) before(changed.status);
        Zone* const known = find(zone);
        if (known != nullptr && !folders_.stopped())
          set_opened(*known, std::move(changed.opened.front()));
        done(changed.status);
      });
}

void SignedZones::set_facts(const dns::Name& zone, const SigningFacts& facts) {
  Zone* const found = find(zone);
  if (found == nullptr || !found->opened || !*found->opened) return;
  OpenedKeys& opened = **found->opened;
  opened.facts = facts;
  // The keys of a zone that was unsigned were not read.
  if (!opened.keys && !facts.is_unsigned()) return read_again(zone);
  update_signer(*found);
}

void SignedZones::read_again(const dns::Name& zone) {
  Zone* const found = find(zone);
  if (found == nullptr) return;
  found->opened.reset();
  found->signer.reset();
  found->awaits_source = false;
  read_unread();
}

void SignedZones::import_key(const dns::Name& zone, std::shared_ptr<const Fd> file,
                             std::function<void(const Result<dns::SigningKey>& key)> done) {
  folders_.run(
      [zone, file = std::move(file)](Files& files, const std::string& journal) {
        return import_zone_key(files, journal, zone, *file);
      },
      [this, zone, done = std::move(done)](const Result<dns::SigningKey>& key) {
        if (folders_.stopped()) return done(key);
        Zone* const found = find(zone);
        const bool is_awaited = found != nullptr && found->opened && !*found->opened;
        // A command gives the keys one after the other, and the zone is not to be signed by some.
        if (key && is_awaited)
          next_retry_ = std::chrono::steady_clock::now() + kRetry;
        else if (key)
          read_again(zone);
        done(key);
      });
}

/// The clock jumped, so nobody knows how much of a wait is over.
void SignedZones::begin_waits_anew() {
  for (const auto& [key, zone] : zones_) {
    const SigningFacts* const known = facts_of(zone.name);
    const bool is_waiting = zone.stage == SigningStage::kSpreading ||
                            zone.stage == SigningStage::kDsExpiring ||
                            (known != nullptr && (known->roll.step != RollStep::kNone ||
                                                  known->lower_ttl_since != 0));
    if (!is_waiting) continue;
    const auto edit = [now = now()](SigningFacts& facts) {
      KeyRoll& roll = facts.roll;
      for (std::uint64_t* const time : {&roll.since, &roll.signatures_gone, &roll.ds_seen})
        if (*time != 0) *time = now;
      if (facts.lower_ttl_since != 0) facts.lower_ttl_since = now;
      if (facts.ds_gone != 0)
        facts.ds_gone = now;
      else if (facts.cds_since == 0 && facts.signed_since != 0)
        facts.signed_since = now;
    };
    edit_facts(zone.name, edit, nullptr);
  }
}

/// Zones whose stage waited for the clock go on.
void SignedZones::confirm_clock() {
  if (clock_.confirm()) begin_waits_anew();
  for (auto& [key, zone] : zones_)
    if (zone.opened && *zone.opened && !zone.is_time_right) update_signer(zone);
}

std::vector<std::string> ds_records(const ZoneSigners& signers, const zone::ZoneView& served) {
  constexpr std::uint8_t kSha256 = 2;
  std::vector<std::string> records;
  if (!served) return records;
  const dns::NameView zone = served.apex();
  const auto signer = signers.signer_of(zone);
  if (!signer || !*signer || !(*signer)->has_signed(served)) return records;
  const zone::SigningKeys& keys = (*signer)->keys();
  for (const dns::SigningKey& key : keys.all())
    if (keys.use_of(key).has_ds)
      records.push_back(
          dns::rdata_to_text(dns::RRType::kDS, *dns::make_ds(zone, key.dnskey(), kSha256)));
  return records;
}

std::string SignedZones::problem(dns::NameView zone) const {
  const Zone* const found = find(zone);
  if (found == nullptr || !found->opened) return {};
  return *found->opened ? clock_doubt(*found) : found->opened->error().text;
}

}  // namespace pando::manager
