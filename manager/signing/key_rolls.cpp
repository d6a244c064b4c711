#include "manager/signing/key_rolls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "dns/dnssec/dnskey.h"
#include "dns/folded_key.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

/// Tags of the DNSKEY records that are served. With REVOKE they would have others (RFC 5011 §3),
/// which nobody here gives them.
std::vector<std::uint16_t> published_tags(const zone::ZoneView& zone) {
  std::vector<std::uint16_t> tags;
  if (zone && zone.loaded())
    zone.apex_record().find(dns::RRType::kDNSKEY).for_each_rdata([&](ByteView rdata) {
      tags.push_back(dns::key_tag(rdata));
    });
  return tags;
}

/// Without a DS record at the parent, nobody knows how a zone's keys are to be followed: the first
/// ones have to come there before.
Status check_stage(const SignedZones& zones, const dns::Name& zone, RolledKeys keys) {
  if (zones.facts_of(zone) == nullptr)
    return fail(Errc::kUnsupported, "{}: {}", dns::to_text(zone), zones.problem(zone));
  const SigningStage stage = zones.state_of(zone).stage;
  const bool is_of_data = keys == RolledKeys::kZsk;
  if (stage == SigningStage::kSecure) return {};
  if (is_of_data && (stage == SigningStage::kSpreading || stage == SigningStage::kDsWanted))
    return {};
  return fail(Errc::kInvalid, "{} is in stage '{}': keys are rolled in stage 'secure'",
              dns::to_text(zone), to_text(stage));
}

}  // namespace

std::string_view to_text(RollWait wait) noexcept {
  switch (wait) {
    case RollWait::kNothing:
      return "";
    case RollWait::kZone:
      return "zone";
    case RollWait::kSignatures:
      return "signatures";
    case RollWait::kParent:
      return "parent";
    case RollWait::kCaches:
      return "caches";
    case RollWait::kOperator:
      return "operator";
    case RollWait::kUnsigning:
      return "unsigning";
  }
  return "";
}

void KeyRolls::start(const dns::Name& zone, RolledKeys keys, Done done) {
  if (auto may = check_stage(zones_, zone, keys); !may) return done(may);
  RollOrder order{keys, zones_.wanted(zone).layout,
                  published_tags(committer_.current().zone_at(zone))};
  zones_.change_folder(
      zone,
      [zone, order = std::move(order)](Files& files, const std::string& journal) {
        return begin_key_roll(files, journal, zone, order);
      },
      std::move(done));
}

void KeyRolls::restore(const dns::Name& zone, std::uint16_t tag, Done done) {
  if (auto may = check_stage(zones_, zone, RolledKeys::kZsk); !may) return done(may);
  zones_.change_folder(
      zone,
      [zone, tag](Files& files, const std::string& journal) {
        return restore_zone_key(files, journal, zone, tag);
      },
      std::move(done));
}

void KeyRolls::set_word(const dns::Name& zone, bool is_agreed, Done done) {
  const SigningFacts* const facts = zones_.facts_of(zone);
  if (facts == nullptr || facts->roll.step == RollStep::kNone)
    return done(fail(Errc::kInvalid, "no key rollover of {} is under way ('pandoctl dnssec roll')",
                     dns::to_text(zone)));
  if (is_agreed && facts->unsign_since != 0)
    return done(fail(Errc::kInvalid, "{} is being unsigned", dns::to_text(zone)));
  zones_.edit_facts(
      zone,
      [is_agreed](SigningFacts& known) {
        known.roll.is_agreed = is_agreed;
        known.roll.is_held = !is_agreed;
      },
      std::move(done));
}

/// Changes the facts of a roll that is at `step`. A second change waits for the next look.
void KeyRolls::edit(const dns::Name& zone, RollStep step, EditRoll edit,
                    std::function<void()> then) {
  const std::string key = dns::folded_key(zone);
  if (!written_.insert(key).second) return;
  zones_.edit_facts(
      zone,
      [step, edit = std::move(edit)](SigningFacts& known) {
        if (known.roll.step == step) edit(known.roll);
      },
      [this, key, then = std::move(then)](const Status& done) {
        written_.erase(key);
        if (done) then();
      });
}

void KeyRolls::end(const dns::Name& zone) {
  const std::string key = dns::folded_key(zone);
  const auto failed = failed_.find(key);
  const bool is_too_early =
      failed != failed_.end() && std::chrono::steady_clock::now() < failed->second;
  if (is_too_early || !written_.insert(key).second) return;
  failed_.erase(key);
  zones_.change_folder(
      zone,
      [zone, now = zones_.now()](Files& files, const std::string& journal) {
        return end_key_roll(files, journal, zone, now);
      },
      [this, zone, key](const Status& done) {
        written_.erase(key);
        if (done) return log::info("roll_done", "zone", dns::to_text(zone));
        log::error("roll_not_done", "zone", dns::to_text(zone), "reason", done.error().text);
      },
      [this, key](const Status& done) {
        if (!done) failed_.insert_or_assign(key, std::chrono::steady_clock::now() + kRetry);
      });
}

void KeyRolls::retry(std::chrono::steady_clock::time_point now) {
  std::vector<std::string> due;
  for (const auto& [key, time] : failed_)
    if (now >= time) due.push_back(key);
  for (const std::string& key : due) {
    failed_.erase(key);
    check(dns::Name(dns::name_of_key(key)));
  }
}

void KeyRolls::check(const dns::Name& zone) {
  const SigningFacts* const facts = zones_.facts_of(zone);
  if (facts == nullptr || facts->roll.step == RollStep::kNone) return;
  const RollState state = zones_.state_of(zone).roll;
  if (state.is_done) return end(zone);
  if (state.next == RollStep::kNone) return;
  edit(
      zone, facts->roll.step,
      [next = state.next](KeyRoll& roll) {
        // A word of the operator, or a jump of the clock, may have come meanwhile.
        if (!roll.is_held && roll.since != 0) begin_step(roll, next);
      },
      [this, zone, next = state.next] {
        const SigningFacts* const now = zones_.facts_of(zone);
        if (now != nullptr && now->roll.step == next)
          log::info("roll_step", "zone", dns::to_text(zone), "step", to_text(next));
      });
}

void KeyRolls::looked(const dns::Name& zone, const ZoneSignerPtr& signer,
                      const SignatureLook& look) {
  const SigningFacts* const facts = zones_.facts_of(zone);
  if (facts == nullptr || facts->roll.step == RollStep::kNone) return;
  const auto present = zones_.signer_of(zone);
  if (present && *present == signer) note(zone, facts->roll, look);
}

/// The times are those of now, not of the publication: a wait gets longer by that, never shorter.
void KeyRolls::note(const dns::Name& zone, const KeyRoll& roll, const SignatureLook& look) {
  const bool is_swap = roll.step == RollStep::kSwap;
  const auto then = [this, zone] { check(zone); };
  if (roll.since == 0 && look.shows_keys)
    return edit(
        zone, roll.step, [now = zones_.now()](KeyRoll& known) { known.since = now; },
        [this, zone, is_swap] {
          if (!is_swap || zones_.state_of(zone).roll.wait != RollWait::kParent) return;
          log::info("ds_wanted", "zone", dns::to_text(zone), "ds", new_ds(zone));
        });
  // An older whole zone may have come, which was signed before the step.
  const bool is_lost = roll.since != 0 && !look.shows_keys;
  if (is_lost || (roll.signatures_gone != 0 && look.has_old_signatures))
    return edit(
        zone, roll.step,
        [is_lost](KeyRoll& known) {
          known.signatures_gone = 0;
          if (is_lost) known.since = 0;
        },
        then);
  if (roll.since != 0 && is_swap && roll.signatures_gone == 0 && !look.has_old_signatures)
    return edit(
        zone, roll.step, [now = zones_.now()](KeyRoll& known) { known.signatures_gone = now; },
        then);
  check(zone);
}

std::string KeyRolls::new_ds(const dns::Name& zone) const {
  const zone::ZoneView served = committer_.current().zone_at(zone);
  return fmt::format("{}", fmt::join(ds_records(zones_, served), "; "));
}

}  // namespace pando::manager
