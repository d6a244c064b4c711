#include "manager/signing/ds_check.h"

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <utility>

#include "base/random.h"
#include "dns/dnssec/dnskey.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/net/udp_exchange.h"

namespace pando::manager {

namespace {

/// Questions that are under way at a time.
constexpr std::size_t kMaxAsked = 32;

struct DsJob {
  dns::Name zone;
  Endpoint resolver;
};

asio::awaitable<Result<ParentDs>> ask_resolver(DsJob job) {
  const DsQuestion question(job.zone, random_number<std::uint16_t>());
  std::optional<ParentDs> answer;
  std::string refused;  // why the last datagram was rejected
  UdpExchange exchange;
  exchange.peer = job.resolver;
  exchange.message = question.octets();
  exchange.accept = [&](ByteView message) {
    auto read = question.read_answer(message);
    if (read)
      answer = std::move(*read);
    else
      refused = read.error().text;
    return answer.has_value();
  };
  const Status done = co_await udp_exchange(std::move(exchange));
  if (answer) co_return std::move(*answer);
  co_return fail(Errc::kIo, "{}", refused.empty() ? done.error().text : refused);
}

/// Whether a DS record is of a key. Parents choose digests themselves, and may know more types.
bool is_of(const Bytes& ds, dns::NameView zone, const Bytes& dnskey) {
  constexpr std::size_t kAlgorithmAt = 2, kDigestTypeAt = 3;
  if (ds.size() <= kDigestTypeAt) return false;
  if (const auto made = dns::make_ds(zone, dnskey, ds[kDigestTypeAt])) return *made == ds;
  return load_be16(ds.data()) == dns::key_tag(dnskey) && ds[kAlgorithmAt] == dnskey[3];
}

/// Whether each key has a DS record, and no other key has one.
bool are_of(const std::vector<Bytes>& found, dns::NameView zone,
            const std::vector<Bytes>& dnskeys) {
  return std::ranges::all_of(dnskeys, [&](const Bytes& dnskey) {
    return std::ranges::any_of(found, [&](const Bytes& ds) { return is_of(ds, zone, dnskey); });
  }) && std::ranges::all_of(found, [&](const Bytes& ds) {
    return std::ranges::any_of(dnskeys,
                               [&](const Bytes& dnskey) { return is_of(ds, zone, dnskey); });
  });
}

/// DNSKEY records of the keys that are to have DS records.
std::vector<Bytes> keys_with_ds(const ZoneSigner& signer) {
  std::vector<Bytes> dnskeys;
  for (const dns::SigningKey& key : signer.keys().all())
    if (signer.keys().use_of(key).has_ds) dnskeys.push_back(key.dnskey());
  return dnskeys;
}

}  // namespace

struct DsCheck::Asked {
  dns::Name zone;
  AwaitedDs awaited = AwaitedDs::kNothing;
  std::vector<Bytes> wanted;  // DNSKEY records
};

AwaitedDs awaited_ds(const SigningFacts& facts, const SigningState& state) noexcept {
  if (state.stage == SigningStage::kNoDsWanted) return AwaitedDs::kNone;
  if (state.stage == SigningStage::kDsWanted && facts.cds_since != 0) return AwaitedDs::kKeys;
  return state.roll.wait == RollWait::kParent ? AwaitedDs::kKeys : AwaitedDs::kNothing;
}

void note_ds(SigningFacts& facts, bool has_ds, std::uint64_t now) noexcept {
  std::uint64_t& since = has_ds ? facts.ds_seen : facts.ds_gone;
  if (since == 0) since = now;
  KeyRoll& roll = facts.roll;
  const bool is_awaited = roll.step == RollStep::kSwap && roll.since != 0;
  if (has_ds && is_awaited && roll.ds_seen == 0) roll.ds_seen = now;
}

void DsCheck::check_zone(const dns::Name& zone) {
  const std::string key = dns::folded_key(zone);
  const SigningFacts* const facts = zones_.facts_of(zone);
  const bool is_asked = facts != nullptr && !zones_.wanted(zone).ds_check.empty() &&
                        awaited_ds(*facts, zones_.state_of(zone)) != AwaitedDs::kNothing;
  if (is_asked)
    waiting_.try_emplace(key, std::chrono::steady_clock::now());
  else
    waiting_.erase(key);
}

void DsCheck::check(std::chrono::steady_clock::time_point now) {
  if (waiting_.empty() || !runtime_) return;
  std::vector<std::string> due;
  for (auto& [key, time] : waiting_) {
    if (under_way_ + due.size() >= kMaxAsked) break;
    if (now < time) continue;
    const std::uint64_t propagation =
        zones_.wanted(dns::Name(dns::name_of_key(key))).waits.propagation;
    time = now + std::chrono::seconds(std::clamp<std::uint64_t>(propagation, 1, kMaxPause));
    due.push_back(key);
  }
  for (const std::string& key : due) ask(key);
}

void DsCheck::ask(const std::string& key) {
  const dns::Name zone(dns::name_of_key(key));
  const SigningFacts* const facts = zones_.facts_of(zone);
  const auto signer = zones_.signer_of(zone);
  if (facts == nullptr || !signer || !*signer) return;
  const config::Settings& settings = runtime_->settings;
  const std::string name = zones_.wanted(zone).ds_check;
  const auto remote = std::ranges::find(settings.remotes, name, &config::Remote::name);
  if (remote == settings.remotes.end() || remote->address.empty()) return;
  DsJob job{zone, remote->address.front()};
  auto asked = std::make_shared<Asked>(
      Asked{zone, awaited_ds(*facts, zones_.state_of(zone)), keys_with_ds(**signer)});
  ++under_way_;
  asio::co_spawn(network_.loop(), ask_resolver(std::move(job)),
                 [this, asked, &loop = io_, alive = alive_](const std::exception_ptr& thrown,
                                                            Result<ParentDs> answer) {
                   if (thrown) answer = fail(Errc::kIo, "the question ended by an exception");
                   auto handed = std::make_shared<Result<ParentDs>>(std::move(answer));
                   asio::post(loop, [this, asked, alive, handed] {
                     if (*alive) answered(*asked, *handed);
                   });
                 });
}

void DsCheck::answered(const Asked& asked, const Result<ParentDs>& answer) {
  --under_way_;
  const std::string key = dns::folded_key(asked.zone);
  std::string reason;
  if (!answer)
    reason = answer.error().text;
  else if (!answer->is_validated)
    reason = "the resolver does not vouch for its answer (AD)";
  if (!reason.empty()) {
    if (std::exchange(told_[key], reason) != reason)
      log::warning("ds_not_checked", "zone", dns::to_text(asked.zone), "reason", reason);
    return;
  }
  told_.erase(key);
  const SigningFacts* const facts = zones_.facts_of(asked.zone);
  // The zone may wait for other records than those that were asked for.
  if (facts == nullptr || awaited_ds(*facts, zones_.state_of(asked.zone)) != asked.awaited) return;
  const auto signer = zones_.signer_of(asked.zone);
  const bool has_ds = asked.awaited == AwaitedDs::kKeys;
  if (!signer || !*signer || keys_with_ds(**signer) != asked.wanted) return;
  if (!are_of(answer->records, asked.zone, has_ds ? asked.wanted : std::vector<Bytes>())) return;
  if (has_ds)
    log::info("ds_seen", "zone", dns::to_text(asked.zone));
  else
    log::info("ds_gone", "zone", dns::to_text(asked.zone));
  zones_.edit_facts(
      asked.zone,
      [has_ds, now = zones_.now()](SigningFacts& known) {
        if (has_ds ? known.unsign_since == 0 : known.unsign_since != 0) note_ds(known, has_ds, now);
      },
      nullptr);
}

}  // namespace pando::manager
