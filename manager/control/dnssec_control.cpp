#include "manager/control/dnssec_control.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/control_json.h"
#include "manager/control/pool_work.h"
#include "manager/signing/policy_check.h"
#include "shm/side_table.h"

namespace pando::manager {

using nlohmann::json;

namespace {

/// The event that begins the next stage, for people.
std::string next_text(SigningStage stage, const dns::Name& zone) {
  const std::string name = dns::to_text(zone);
  switch (stage) {
    case SigningStage::kSigning:
      return "all of the zone is signed";
    case SigningStage::kSpreading:
      return "the longest TTL of unsigned records is over";
    case SigningStage::kDsWanted:
      return fmt::format(
          "the parent publishes the DS records: 'pandoctl dnssec ds-seen {}' says so", name);
    case SigningStage::kSecure:
      return "";
    case SigningStage::kNoDsWanted:
      return fmt::format(
          "the parent removes the DS records: 'pandoctl dnssec ds-gone {}' says so", name);
    case SigningStage::kDsExpiring:
      return "the TTL of the DS records is over";
    case SigningStage::kUnsigning:
      return "the signatures are taken away";
    case SigningStage::kUnsigned:
      return fmt::format("take 'dnssec' out of the zone's configuration, or sign it again with "
                         "'pandoctl dnssec unsign {} --cancel'",
                         name);
  }
  return "";
}

/// The event that begins the next step of a key roll, for people.
std::string next_text(RollWait wait, const dns::Name& zone) {
  const std::string name = dns::to_text(zone);
  switch (wait) {
    case RollWait::kZone:
      return "all of the zone shows the step";
    case RollWait::kSignatures:
      return "the old keys' signatures are renewed by the new ones";
    case RollWait::kParent:
      return fmt::format("the parent publishes these DS records and no others: 'pandoctl dnssec "
                         "ds-seen {}' says so",
                         name);
    case RollWait::kCaches:
      return "caches forget what they have of the step before";
    case RollWait::kOperator:
      return fmt::format("'pandoctl dnssec continue {}'", name);
    case RollWait::kUnsigning:
      return "the zone is being unsigned";
    case RollWait::kNothing:
      break;
  }
  return "";
}

/// Keys of one kind alone sign everything (zone/dnssec/set_signer.h).
std::vector<ipc::SigningKeyRow> rows_of(const std::vector<dns::SigningKey>& keys) {
  const std::vector<zone::KeyUse> uses = uses_of(folder_keys(keys), {});
  std::vector<ipc::SigningKeyRow> rows;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const char* const part = uses[i].signs_keys ? "KSK" : "ZSK";
    const bool is_csk = uses[i].signs_keys && uses[i].signs_data;
    rows.push_back(
        {is_csk ? "CSK" : part, keys[i].algorithm(), keys[i].tag(), keys[i].bits(), {}, {}});
  }
  return rows;
}

std::vector<std::string> texts_of(const zone::KeyUse& use) {
  std::vector<std::string> texts;
  const auto add = [&texts](bool is_so, const char* text) {
    if (is_so) texts.emplace_back(text);
  };
  add(use.is_published, "published");
  add(use.signs_keys, "signs keys");
  add(use.signs_data, "signs data");
  add(use.has_ds, "ds");
  return texts;
}

/// Adds the keys' parts in a roll, and their uses at its step.
void add_uses(std::vector<ipc::SigningKeyRow>& rows, const zone::SigningKeys& keys,
              const KeyRoll& roll) {
  const auto has = [](const std::vector<KeyId>& ids, const ipc::SigningKeyRow& row) {
    return std::ranges::find(ids, KeyId{row.algorithm, row.tag}) != ids.end();
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ipc::SigningKeyRow& row = rows[i];
    row.part = has(roll.new_keys, row) ? "new" : has(roll.old_keys, row) ? "old" : "stays";
    row.uses = texts_of(keys.use_of(keys.all()[i]));
    row.role = keys.all()[i].is_sep() ? "KSK or CSK" : "ZSK";
  }
}

std::string request_text(zone::ParentRequest request) {
  switch (request) {
    case zone::ParentRequest::kKeys:
      return "keys";
    case zone::ParentRequest::kRemoval:
      return "removal";
    case zone::ParentRequest::kNone:
      break;
  }
  return "";
}

}  // namespace

void DnssecControl::add_to(CommandTable& table) {
  namespace verb = ipc::verb;
  const auto add = [&](std::string_view name, auto method) {
    table.add_for_zone(name, std::bind_front(method, this));
  };
  table.add_query(verb::kDnssecList, std::bind_front(&DnssecControl::list, this));
  add(verb::kDnssecStatus, &DnssecControl::status);
  add(verb::kDnssecCheck, &DnssecControl::check);
  add(verb::kDnssecImport, &DnssecControl::import_key);
  add(verb::kDnssecDsSeen, &DnssecControl::note_ds);
  add(verb::kDnssecDsGone, &DnssecControl::note_ds);
  add(verb::kDnssecUnsign, &DnssecControl::unsign);
  add(verb::kDnssecStaySigned, &DnssecControl::stay_signed);
  add(verb::kDnssecRoll, &DnssecControl::roll);
  add(verb::kDnssecContinue, &DnssecControl::continue_roll);
  add(verb::kDnssecHold, &DnssecControl::hold_roll);
  add(verb::kDnssecRestoreKey, &DnssecControl::restore_key);
  table.add(verb::kDnssecClockOk, [this](const Request&, const Reply& reply) {
    parts_.zones.signing->confirm_clock();
    reply(json::object());
  });
}

std::string DnssecControl::policy_of(const dns::Name& zone) const {
  const auto* options = parts_.configuration.runtime->settings.zones.options_of(zone);
  return options == nullptr ? "" : options->dnssec;
}

std::string DnssecControl::stage_of(const dns::Name& zone) const {
  const SignedZones& zones = parts_.zones.signing->zones();
  if (zones.facts_of(zone) == nullptr && !zones.problem(zone).empty()) return "keys-missing";
  return std::string(to_text(zones.state_of(zone).stage));
}

Result<json> DnssecControl::list(const Request& request) const {
  std::optional<dns::Name> after;
  if (!request.after.empty()) {
    auto name = dns::Name::from_text(request.after);
    if (!name) return pass(name);
    after = *name;
  }
  const SigningService& signing = *parts_.zones.signing;
  ipc::DnssecListResult result;
  signing.zones().for_each_after(after, [&](const dns::Name& zone) {
    if (result.zones.size() == request.limit) {
      result.next = result.zones.back().zone;
      return false;
    }
    result.zones.push_back({dns::to_text(zone), stage_of(zone), signing.zones().state_of(zone).until,
                            signing.problem(zone)});
    return true;
  });
  return json(result);
}

void DnssecControl::status(const dns::Name& zone, const Request&, const Reply& reply) {
  const SigningService& signing = *parts_.zones.signing;
  if (!signing.zones().has(zone))
    return reply(fail(Errc::kNotFound, "{} is not signed here", dns::to_text(zone)));
  const SigningState state = signing.zones().state_of(zone);
  ipc::DnssecStatusResult result;
  result.zone = dns::to_text(zone);
  result.policy = policy_of(zone);
  result.stage = stage_of(zone);
  result.until = state.until;
  if (result.stage != "keys-missing") result.next = next_text(state.stage, zone);
  const auto signer = signing.zones().signer_of(zone);
  if (signer && *signer) result.keys = rows_of((*signer)->keys().all());
  show_roll(zone, result);
  result.cds = request_text(state.parent_request);
  if (const zone::ZoneView served = parts_.services.committer->current().zone_at(zone)) {
    result.ds = ds_records(signing.zones(), served);
    result.serial = served.loaded() ? served.serial().value : 0;
    const auto* side = shm::known_side(parts_.data.store->window(), served.side_index());
    if (side != nullptr) result.signatures_end = shm::signatures_end(*side);
  }
  result.problem = signing.problem(zone);
  result.clock = signing.zones().clock_problem();
  if (signer && *signer && result.roll.empty())
    result.note = layout_note(signing.zones().wanted(zone).layout, (*signer)->keys().all());
  reply(json(result));
}

void DnssecControl::show_roll(const dns::Name& zone, ipc::DnssecStatusResult& result) const {
  const SignedZones& zones = parts_.zones.signing->zones();
  const SigningFacts* const facts = zones.facts_of(zone);
  if (facts == nullptr || facts->roll.step == RollStep::kNone) return;
  const RollState state = zones.state_of(zone).roll;
  result.roll = to_text(facts->roll.step);
  result.roll_wait = to_text(state.wait);
  result.roll_until = state.until;
  result.roll_next = next_text(state.wait, zone);
  const auto signer = zones.signer_of(zone);
  if (signer && *signer) add_uses(result.keys, (*signer)->keys(), facts->roll);
}

/// The policy that the request names, or the zone's, or the usual one.
void DnssecControl::check(const dns::Name& zone, const Request& request, const Reply& reply) {
  const config::Settings& settings = parts_.configuration.runtime->settings;
  std::string name = request.label.empty() ? policy_of(zone) : request.label;
  if (name.empty()) name = config::kDefaultDnssecPolicy;
  const auto policy = settings.dnssec_policy(name);
  if (!policy) return reply(fail(Errc::kNotFound, "no policy is named '{}'", name));
  const auto work = [zone, policy = *policy, journal = settings.store.journal](
                        const zone::StoreView& version) -> Result<json> {
    const zone::ZoneView served = version.zone_at(zone);
    if (!served || !served.loaded())
      return fail(Errc::kNotFound, "{} is not loaded", dns::to_text(zone));
    PolicyCheck found = check_policy(native_files(), journal, served, policy);
    return json(ipc::DnssecCheckResult{dns::to_text(zone), policy.name, served.serial().value,
                                       rows_of(found.keys), found.makes_key, found.signatures,
                                       found.left_out, found.max_ttl, std::move(found.problems),
                                       std::move(found.notes)});
  };
  work_in_pool(io_, pool_, parts_.data, work, reply);
}

/// A zone that is signed by its keys gets no others: validators would not know these.
void DnssecControl::import_key(const dns::Name& zone, const Request& request, const Reply& reply) {
  if (!request.descriptor)
    return reply(fail(Errc::kInvalid, "the key comes as a file's descriptor"));
  if (parts_.configuration.runtime->settings.zones.options_of(zone) == nullptr)
    return reply(fail(Errc::kNotFound, "{} is not in the configuration", dns::to_text(zone)));
  SignedZones& zones = parts_.zones.signing->zones();
  const zone::ZoneView served = parts_.services.committer->current().zone_at(zone);
  const bool is_signed = served && served.loaded() && served.denial() != zone::Denial::kUnsigned;
  if (is_signed && zones.facts_of(zone) != nullptr)
    return reply(fail(Errc::kExists, "{} is signed by its keys already", dns::to_text(zone)));
  zones.import_key(zone, request.descriptor, [zone, reply](const Result<dns::SigningKey>& key) {
    if (!key) return reply(pass(key));
    reply(json(rows_of({*key}).front()));
  });
}

Result<const SigningFacts*> DnssecControl::facts_of(const dns::Name& zone) const {
  const SignedZones& zones = parts_.zones.signing->zones();
  if (!zones.has(zone)) return fail(Errc::kNotFound, "{} is not signed here", dns::to_text(zone));
  const SigningFacts* const facts = zones.facts_of(zone);
  if (facts == nullptr)
    return fail(Errc::kUnsupported, "{}: {}", dns::to_text(zone), zones.problem(zone));
  return facts;
}

/// `dnssec-ds-seen` and `dnssec-ds-gone`. The parent may act on CDS records, or be told by hand at
/// any time, so that the operator is believed at each stage.
void DnssecControl::note_ds(const dns::Name& zone, const Request& request, const Reply& reply) {
  const auto facts = facts_of(zone);
  if (!facts) return reply(pass(facts));
  const bool is_seen = request.verb == ipc::verb::kDnssecDsSeen;
  if (is_seen && (*facts)->unsign_since != 0)
    return reply(fail(Errc::kInvalid, "{} is being unsigned", dns::to_text(zone)));
  if (is_seen && (*facts)->signed_since == 0)
    return reply(fail(Errc::kInvalid, "{} is not signed yet", dns::to_text(zone)));
  if (!is_seen && (*facts)->unsign_since == 0)
    return reply(fail(Errc::kInvalid, "{}: nobody began to unsign it ('pandoctl dnssec unsign')",
                      dns::to_text(zone)));
  SignedZones& zones = parts_.zones.signing->zones();
  const SigningState state = zones.state_of(zone);
  const bool is_rolling = state.stage == SigningStage::kSecure &&
                          (*facts)->roll.step != RollStep::kNone;
  if (is_seen && is_rolling && state.roll.wait != RollWait::kParent)
    return reply(fail(Errc::kInvalid, "the key rollover of {} does not wait for its parent now",
                      dns::to_text(zone)));
  // A second word does not begin the wait anew.
  const auto edit = [now = zones.now(), is_seen](SigningFacts& known) {
    manager::note_ds(known, is_seen, now);
  };
  zones.edit_facts(zone, edit, [reply](const Status& done) { reply(empty_result(done)); });
}

void DnssecControl::unsign(const dns::Name& zone, const Request&, const Reply& reply) {
  const auto facts = facts_of(zone);
  if (!facts) return reply(pass(facts));
  SignedZones& zones = parts_.zones.signing->zones();
  const auto edit = [now = zones.now()](SigningFacts& known) {
    if (known.unsign_since == 0) known.unsign_since = now;
  };
  zones.edit_facts(zone, edit, [reply](const Status& done) { reply(empty_result(done)); });
}

/// A zone that is unsigned already begins as a new one; its parent has no DS records.
void DnssecControl::stay_signed(const dns::Name& zone, const Request&, const Reply& reply) {
  const auto facts = facts_of(zone);
  if (!facts) return reply(pass(facts));
  if ((*facts)->unsign_since == 0)
    return reply(fail(Errc::kInvalid, "{} is not being unsigned", dns::to_text(zone)));
  SignedZones& zones = parts_.zones.signing->zones();
  // The version without signatures may be served already, although nobody has noted that yet.
  const auto edit = [is_late = zones.unsigning(zone).has_value()](SigningFacts& known) {
    if (known.unsigned_since != 0 || is_late) known = facts_of_new_start(known);
    if (known.ds_gone != 0) known.ds_seen = 0;
    known.unsign_since = known.ds_gone = 0;
  };
  zones.edit_facts(zone, edit, [reply](const Status& done) { reply(empty_result(done)); });
}

void DnssecControl::roll(const dns::Name& zone, const Request& request, const Reply& reply) {
  const auto facts = facts_of(zone);
  if (!facts) return reply(pass(facts));
  const std::string& keys = request.label;
  if (!keys.empty() && keys != "all" && keys != "ksk" && keys != "zsk")
    return reply(fail(Errc::kInvalid, "'{}': no keys that can be followed: 'all', 'ksk', 'zsk'",
                      keys));
  const RolledKeys rolled = keys == "ksk"   ? RolledKeys::kKsk
                            : keys == "zsk" ? RolledKeys::kZsk
                                            : RolledKeys::kAll;
  parts_.zones.signing->rolls().start(
      zone, rolled, [reply](const Status& done) { reply(empty_result(done)); });
}

void DnssecControl::continue_roll(const dns::Name& zone, const Request&, const Reply& reply) {
  parts_.zones.signing->rolls().agree(
      zone, [reply](const Status& done) { reply(empty_result(done)); });
}

void DnssecControl::hold_roll(const dns::Name& zone, const Request&, const Reply& reply) {
  parts_.zones.signing->rolls().hold(
      zone, [reply](const Status& done) { reply(empty_result(done)); });
}

void DnssecControl::restore_key(const dns::Name& zone, const Request& request,
                                const Reply& reply) {
  const auto facts = facts_of(zone);
  if (!facts) return reply(pass(facts));
  std::uint16_t tag = 0;
  const char* const end = request.label.data() + request.label.size();
  const auto parsed = std::from_chars(request.label.data(), end, tag);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    return reply(fail(Errc::kInvalid, "'{}' is no tag of a key", request.label));
  parts_.zones.signing->rolls().restore(
      zone, tag, [reply](const Status& done) { reply(empty_result(done)); });
}

}  // namespace pando::manager
