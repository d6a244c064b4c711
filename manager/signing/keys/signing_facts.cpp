#include "manager/signing/keys/signing_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/crash_point.h"

namespace pando::manager {

namespace {

constexpr std::string_view kFactsHead =
    "# When caches and the parent could see what of this zone, in seconds since 1970. The manager\n"
    "# writes this file. Without it the zone's waits begin anew, and a key rollover that was under way\n"
    "# has to be ended by hand: docs/howto/dnssec.md has the way.\n";
constexpr std::uint64_t kMaxFactsBytes = 64 * 1024;
/// Far above all times. The sum of larger numbers would begin again at 0, and end a wait too early.
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 48U;

struct Word {
  std::string_view name;
  std::uint64_t SigningFacts::* value;
};
constexpr Word kWords[] = {
    {"signed", &SigningFacts::signed_since}, {"max-ttl", &SigningFacts::max_ttl},
    {"lower-ttl", &SigningFacts::lower_ttl}, {"lower-ttl-since", &SigningFacts::lower_ttl_since},
    {"cds", &SigningFacts::cds_since},       {"ds-seen", &SigningFacts::ds_seen},
    {"unsign", &SigningFacts::unsign_since}, {"ds-gone", &SigningFacts::ds_gone},
    {"unsigned", &SigningFacts::unsigned_since},
};

struct RollWord {
  std::string_view name;
  std::uint64_t KeyRoll::* value;
};
constexpr RollWord kRollWords[] = {
    {"roll-since", &KeyRoll::since},
    {"roll-signatures-gone", &KeyRoll::signatures_gone},
    {"roll-ds-seen", &KeyRoll::ds_seen},
};
struct RollFlag {
  std::string_view name;
  bool KeyRoll::* value;
};
constexpr RollFlag kRollFlags[] = {{"roll-agreed", &KeyRoll::is_agreed},
                                   {"roll-held", &KeyRoll::is_held}};
struct RollKeys {
  std::string_view name;
  std::vector<KeyId> KeyRoll::* keys;
};
constexpr RollKeys kRollKeys[] = {{"roll-old-key", &KeyRoll::old_keys},
                                  {"roll-new-key", &KeyRoll::new_keys}};
constexpr std::string_view kStepWord = "roll-step";
constexpr RollStep kSteps[] = {RollStep::kSign, RollStep::kPublish, RollStep::kSwap,
                               RollStep::kWithdraw, RollStep::kRemove};

std::string facts_path(const std::string& folder) { return folder + "/facts"; }

template <class Number>
bool take_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end && std::uint64_t{number} <= kMaxNumber;
}

/// Algorithm and tag, as `13/12345`.
bool take_key(std::string_view text, std::vector<KeyId>& keys) {
  KeyId key;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || !take_number(text.substr(0, slash), key.algorithm) ||
      !take_number(text.substr(slash + 1), key.tag))
    return false;
  keys.push_back(key);
  return true;
}

bool take_step(std::string_view text, RollStep& step) {
  const auto found = std::ranges::find(kSteps, text, [](RollStep one) { return to_text(one); });
  if (found == std::end(kSteps)) return false;
  step = *found;
  return true;
}

/// One line: a word, a space, a value.
bool take_line(std::string_view line, SigningFacts& facts) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, space), value = line.substr(space + 1);
  KeyRoll& roll = facts.roll;
  for (const Word& word : kWords)
    if (word.name == name) return take_number(value, facts.*(word.value));
  for (const RollWord& word : kRollWords)
    if (word.name == name) return take_number(value, roll.*(word.value));
  for (const RollFlag& flag : kRollFlags)
    if (flag.name == name) return roll.*(flag.value) = value == "yes";
  for (const RollKeys& keys : kRollKeys)
    if (keys.name == name) return take_key(value, roll.*(keys.keys));
  return name == kStepWord && take_step(value, roll.step);
}

}  // namespace

std::string_view to_text(RollStep step) noexcept {
  switch (step) {
    case RollStep::kNone:
      break;
    case RollStep::kSign:
      return "sign";
    case RollStep::kPublish:
      return "publish";
    case RollStep::kSwap:
      return "swap";
    case RollStep::kWithdraw:
      return "withdraw";
    case RollStep::kRemove:
      return "remove";
  }
  return "";
}

void note_longest_ttl(SigningFacts& facts, std::uint64_t ttl, std::uint64_t propagation,
                      std::uint64_t now) {
  if (ttl >= facts.max_ttl) {
    facts.max_ttl = ttl;
    facts.lower_ttl = facts.lower_ttl_since = 0;
    return;
  }
  facts.lower_ttl = std::max(facts.lower_ttl, ttl);
  if (facts.lower_ttl_since == 0) facts.lower_ttl_since = now;
  if (now < facts.lower_ttl_since + facts.max_ttl + propagation) return;
  facts.max_ttl = std::exchange(facts.lower_ttl, 0);
  facts.lower_ttl_since = 0;
}

SigningFacts facts_of_new_start(const SigningFacts& old) {
  SigningFacts facts;
  if (old.roll.step == RollStep::kNone) return facts;
  facts.roll = {old.is_unsigned() ? RollStep::kRemove : old.roll.step, old.roll.old_keys,
                old.roll.new_keys};
  if (!old.is_unsigned()) facts.max_ttl = old.max_ttl;
  return facts;
}

std::string text_of(const SigningFacts& facts) {
  std::string text(kFactsHead);
  for (const Word& word : kWords)
    if (facts.*(word.value) != 0) text += fmt::format("{} {}\n", word.name, facts.*(word.value));
  const KeyRoll& roll = facts.roll;
  if (roll.step == RollStep::kNone) return text;
  text += fmt::format("{} {}\n", kStepWord, to_text(roll.step));
  for (const RollKeys& keys : kRollKeys)
    for (const KeyId& key : roll.*(keys.keys))
      text += fmt::format("{} {}/{}\n", keys.name, key.algorithm, key.tag);
  for (const RollWord& word : kRollWords)
    if (roll.*(word.value) != 0) text += fmt::format("{} {}\n", word.name, roll.*(word.value));
  for (const RollFlag& flag : kRollFlags)
    if (roll.*(flag.value)) text += fmt::format("{} yes\n", flag.name);
  return text;
}

Result<SigningFacts> parse_signing_facts(std::string_view text, std::string_view path) {
  SigningFacts facts;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.front() == '#' || line.starts_with("x-")) continue;
    if (!take_line(line, facts))
      return fail(Errc::kCorrupt, "{}:{}: no word of this file and its value", path, number);
  }
  if (facts.roll.step == RollStep::kNone) facts.roll = {};
  return facts;
}

Result<SigningFacts> read_signing_facts(Files& files, const std::string& folder) {
  const std::string path = facts_path(folder);
  const auto bytes = read_file(files, path, kMaxFactsBytes);
  if (!bytes && bytes.error().code == Errc::kNotFound) return SigningFacts();
  if (!bytes) return fail(bytes.error().code, "{}: {}", path, bytes.error().text);
  return parse_signing_facts({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path);
}

Status write_signing_facts(Files& files, const std::string& folder, const SigningFacts& facts) {
  auto written = write_file_atomically(files, facts_path(folder), bytes_of_text(text_of(facts)));
  if (written) crash_point("facts-written");
  return written;
}

}  // namespace pando::manager
