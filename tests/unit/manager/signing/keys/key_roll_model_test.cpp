// Random key rolls against a model of what resolvers may have in their caches: each combination of
// DS records, DNSKEY records and signatures has to validate, by rules that are written down here
// from RFC 4035 §2.2 and §5, and share no code with the signer.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include "manager/signing/keys/roll_step.h"
#include "manager/signing/signing_stage.h"

namespace pando::manager {
namespace key_roll_model_test {

using Keys = std::uint64_t;  // a bit for each tag
using Time = std::uint64_t;

constexpr Time kPropagation = 300;
constexpr Time kDsTtl = 3'600;
constexpr SigningWaits kWaits{kPropagation, kDsTtl, true, false};

/// Values of a kind that were or are published, and until when somebody may have them.
template <class Value>
class History {
 public:
  void publish(Time now, Value value, Time ttl) {
    if (!entries_.empty()) entries_.back().replaced = now;
    entries_.push_back({std::move(value), ttl, std::nullopt});
  }
  void forget(Time now) {
    std::erase_if(entries_, [now](const Entry& entry) {
      return entry.replaced && *entry.replaced + kPropagation + entry.ttl <= now;
    });
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : entries_) visit(entry.value);
  }
  [[nodiscard]] const Value& last() const { return entries_.back().value; }

 private:
  struct Entry {
    Value value;
    Time ttl;
    std::optional<Time> replaced;
  };
  std::vector<Entry> entries_;
};

struct DnskeySet {
  Keys keys = 0;
  Keys signers = 0;
  auto operator<=>(const DnskeySet&) const = default;
};

/// The keys of each algorithm that a history has had.
using Algorithms = std::map<std::uint8_t, Keys>;

/// RFC 4035 §5.2, and §2.2 as strict validators take it: each algorithm of the DS set has a key that
/// the DNSKEY set has and is signed by, and each one of the DNSKEY set signs the data.
const char* fault_of(Keys ds, const DnskeySet& dnskeys, Keys data_signers,
                     const Algorithms& algorithms) {
  for (const auto& [algorithm, keys] : algorithms) {
    if ((ds & keys) != 0 && (ds & keys & dnskeys.keys & dnskeys.signers) == 0)
      return "no DS record leads to a signature of the DNSKEY records";
    if ((dnskeys.keys & keys) != 0 && (dnskeys.keys & keys & data_signers) == 0)
      return "no published key signs the data";
  }
  return (ds & dnskeys.keys) == 0 ? "no DS record is of a key" : "";
}

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    add_keys(13, pick(2) == 0);
    if (pick(4) == 0) add_keys(15, pick(2) == 0);  // imported keys of two algorithms
    facts_.signed_since = facts_.ds_seen = 1;
    for (std::size_t i = 0; i < sets_.size(); ++i) ttls_[i] = 60 * (1 + pick(60));
    facts_.max_ttl = *std::ranges::max_element(ttls_);
    for (std::size_t i = 0; i < sets_.size(); ++i) sets_[i].publish(now_, wanted_data(), ttls_[i]);
    dnskeys_.publish(now_, wanted_dnskeys(), ttls_[0]);
    ds_.publish(now_, wanted_ds(), kDsTtl);
  }

  /// Empty: nothing bogus.
  std::string step() {
    pass_time();
    switch (pick(9)) {
      case 0:
        begin_roll();
        break;
      case 1:
        set_words();
        break;
      case 2:
        act_as_parent();
        break;
      case 3:
        change_ttl();
        break;
      case 4:
        lose_times();
        break;
      default:
        renew();
        look();
        advance();
    }
    for (auto& set : sets_) set.forget(now_);
    dnskeys_.forget(now_);
    ds_.forget(now_);
    return check();
  }

  [[nodiscard]] int rolls_done() const noexcept { return rolls_done_; }
  [[nodiscard]] const std::map<RollStep, int>& steps() const noexcept { return steps_; }

 private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  template <class Visit>
  void for_each_use(Visit&& visit) const {
    const std::vector<zone::KeyUse> uses = uses_of(folder_, facts_.roll);
    for (std::size_t i = 0; i < folder_.size(); ++i) visit(folder_[i].id, uses[i]);
  }
  /// The keys with a use.
  [[nodiscard]] Keys keys_with(bool zone::KeyUse::* use) const {
    Keys keys = 0;
    for_each_use([&](const KeyId& id, const zone::KeyUse& of_key) {
      if (of_key.*use) keys |= Keys{1} << id.tag;
    });
    return keys;
  }
  [[nodiscard]] DnskeySet wanted_dnskeys() const {
    return {keys_with(&zone::KeyUse::is_published), keys_with(&zone::KeyUse::signs_keys)};
  }
  [[nodiscard]] Keys wanted_data() const { return keys_with(&zone::KeyUse::signs_data); }
  [[nodiscard]] Keys wanted_ds() const { return keys_with(&zone::KeyUse::has_ds); }
  /// Whether a set's signatures may stay until they are old.
  [[nodiscard]] bool may_stay(Keys signers) const {
    const Keys needed = wanted_data(), old = keys_with(&zone::KeyUse::keeps_signatures);
    if ((signers & ~(needed | old)) != 0) return false;
    return std::ranges::all_of(algorithms_, [&](const auto& algorithm) {
      const Keys keys = algorithm.second;
      return (needed & keys & ~signers) == 0 || (signers & old & keys) != 0;
    });
  }

  /// Often to the first second in which a step may begin, or a lower TTL may count.
  void pass_time() {
    const RollState state = signing_state(facts_, folder_, kWaits, now_).roll;
    if (state.wait == RollWait::kCaches && pick(3) == 0)
      now_ = state.until;
    else if (facts_.lower_ttl_since != 0 && pick(3) == 0)
      now_ = std::max(now_ + 1, facts_.lower_ttl_since + facts_.max_ttl);
    else
      now_ += pick(4) == 0 ? 1 + pick(40'000) : 1 + pick(600);
  }

  void add_keys(std::uint8_t algorithm, bool is_split) {
    add_key(algorithm, true);
    if (is_split) add_key(algorithm, false);
  }
  void add_key(std::uint8_t algorithm, bool is_sep) {
    algorithms_[algorithm] |= Keys{1} << next_tag_;
    folder_.push_back({{algorithm, next_tag_++}, is_sep});
  }

  void begin_roll() {
    constexpr std::uint16_t kTags = 62;
    if (facts_.roll.step != RollStep::kNone || next_tag_ > kTags) return;
    if (pick(4) == 0)
      for (std::size_t i = 0; i < sets_.size(); ++i) set_ttl(i, 60);  // as before any great change
    KeyRoll& roll = facts_.roll;
    const std::vector<FolderKey> before = folder_;
    const bool is_split = folder_.size() == 2 && folder_[0].is_sep != folder_[1].is_sep;
    const unsigned kind = pick(is_split ? 5 : 3);
    const std::uint8_t algorithm = folder_[0].id.algorithm;
    const std::uint8_t other = pick(2) == 0 ? algorithm : static_cast<std::uint8_t>(28 - algorithm);
    if (kind < 2) {
      for (const FolderKey& key : before) roll.old_keys.push_back(key.id);
      add_keys(other, pick(2) == 0);
    } else if (kind == 2) {
      add_key(algorithm, true);  // a key that is taken back beside the others
    } else {
      roll.old_keys.push_back(before[kind - 3].id);
      add_key(algorithm, before[kind - 3].is_sep);
    }
    for (std::size_t i = before.size(); i < folder_.size(); ++i)
      roll.new_keys.push_back(folder_[i].id);
    begin_step(roll, first_step(shape_of(folder_, roll)));
    ++steps_[roll.step];
  }

  void set_words() {
    facts_.roll.is_agreed = facts_.roll.step != RollStep::kNone && pick(4) != 0;
    facts_.roll.is_held = facts_.roll.step != RollStep::kNone && pick(6) == 0;
    if (pick(10) == 0 && facts_.unsign_since == 0)
      facts_.unsign_since = now_;
    else
      facts_.unsign_since = 0;
  }

  /// The parent does what CDS says, or the operator sees that it has.
  void act_as_parent() {
    if (facts_.roll.step == RollStep::kNone || facts_.unsign_since != 0) return;
    const Keys wanted = wanted_ds();
    const bool is_served = facts_.roll.since != 0;
    if (pick(2) == 0 && is_served && ds_.last() != wanted) ds_.publish(now_, wanted, kDsTtl);
    const bool is_awaited = facts_.roll.step == RollStep::kSwap && is_served;
    if (is_awaited && ds_.last() == wanted && facts_.roll.ds_seen == 0) facts_.roll.ds_seen = now_;
  }

  void change_ttl() {
    set_ttl(pick(static_cast<unsigned>(sets_.size())), 60 * (1 + pick(120)));
  }
  void set_ttl(std::size_t at, Time ttl) {
    ttls_[at] = ttl;
    sets_[at].publish(now_, wanted_data(), ttls_[at]);
    if (at == 0) dnskeys_.publish(now_, wanted_dnskeys(), ttls_[0]);
    note_longest_ttl(facts_, *std::ranges::max_element(ttls_), kPropagation, now_);
  }

  /// A crash before a time was written, or a clock that jumped: waits begin anew.
  void lose_times() {
    KeyRoll& roll = facts_.roll;
    switch (pick(3)) {
      case 0:
        roll.since = 0;
        break;
      case 1:
        roll.signatures_gone = 0;
        break;
      default:
        for (Time* const time : {&roll.since, &roll.signatures_gone, &roll.ds_seen})
          if (*time != 0) *time = now_;
    }
  }

  /// Some sets are signed anew: those that are due for their keys, and any others.
  void renew() {
    if (dnskeys_.last() != wanted_dnskeys() && pick(3) != 0)
      dnskeys_.publish(now_, wanted_dnskeys(), ttls_[0]);
    for (std::size_t i = 0; i < sets_.size(); ++i)
      if ((!may_stay(sets_[i].last()) && pick(3) != 0) || pick(5) == 0)
        sets_[i].publish(now_, wanted_data(), ttls_[i]);
  }

  void look() {
    KeyRoll& roll = facts_.roll;
    note_longest_ttl(facts_, *std::ranges::max_element(ttls_), kPropagation, now_);
    if (roll.step == RollStep::kNone || pick(3) == 0) return;
    const bool shows = dnskeys_.last() == wanted_dnskeys() &&
                       std::ranges::all_of(sets_, [&](const auto& set) { return may_stay(set.last()); });
    const bool has_any_old =
        std::ranges::any_of(sets_, [&](const auto& set) { return (set.last() & ~wanted_data()) != 0; });
    if (roll.since == 0 && shows)
      roll.since = now_;
    else if (roll.since != 0 && roll.step == RollStep::kSwap && roll.signatures_gone == 0 &&
             !has_any_old)
      roll.signatures_gone = now_;
  }

  void advance() {
    KeyRoll& roll = facts_.roll;
    if (roll.step == RollStep::kNone) return;
    const RollState state = signing_state(facts_, folder_, kWaits, now_).roll;
    if (state.is_done) {
      std::erase_if(folder_, [&](const FolderKey& key) {
        return std::ranges::find(roll.old_keys, key.id) != roll.old_keys.end();
      });
      roll = {};
      ++rolls_done_;
    } else if (state.next != RollStep::kNone) {
      begin_step(roll, state.next);
      ++steps_[roll.step];
    }
  }

  [[nodiscard]] std::string check() const {
    std::string fault;
    ds_.for_each([&](Keys ds) {
      dnskeys_.for_each([&](const DnskeySet& dnskeys) {
        for (const auto& set : sets_)
          set.for_each([&](Keys signers) {
            if (fault.empty()) fault = fault_of(ds, dnskeys, signers, algorithms_);
          });
      });
    });
    if (fault.empty()) return fault;
    return fault + " in step '" + std::string(to_text(facts_.roll.step)) + "'";
  }

  std::mt19937 random_;
  Time now_ = 1'780'000'000;
  std::uint16_t next_tag_ = 1;
  std::vector<FolderKey> folder_;
  Algorithms algorithms_;
  SigningFacts facts_;
  History<Keys> ds_;
  History<DnskeySet> dnskeys_;
  std::array<History<Keys>, 3> sets_;  // the signers of each set; the first one has the SOA's TTL
  std::array<Time, 3> ttls_{};
  int rolls_done_ = 0;
  std::map<RollStep, int> steps_;
};

TEST(KeyRollModel, NoCombinationThatCachesMayHaveIsBogus) {
  const unsigned seed = std::random_device{}();
  const unsigned histories = std::getenv("PANDO_FULL") != nullptr ? 10'000 : 1'500;
  int done = 0;
  std::map<RollStep, int> steps;
  for (unsigned history = 0; history < histories; ++history) {
    World world(seed + history);
    for (int i = 0; i < 100; ++i) {
      const std::string fault = world.step();
      ASSERT_EQ(fault, "") << "seed " << seed + history << ", event " << i;
    }
    done += world.rolls_done();
    for (const auto& [step, count] : world.steps()) steps[step] += count;
  }
  EXPECT_GT(done, 300) << "no roll is stopped for good";
  for (const RollStep step : {RollStep::kSign, RollStep::kPublish, RollStep::kSwap,
                              RollStep::kWithdraw, RollStep::kRemove})
    EXPECT_GT(steps[step], 300) << to_text(step);
  RecordProperty("rolls_done", done);
}

}  // namespace key_roll_model_test
}  // namespace pando::manager
