#include "manager/signing/signing_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/crash_point.h"

namespace pando::manager {

namespace {

constexpr std::string_view kFactsHead =
    "# When caches and the parent could see what of this zone, in seconds since 1970. The manager\n"
    "# writes this file. Without it the zone's waits begin anew.\n";
constexpr std::uint64_t kMaxFactsBytes = 64 * 1024;
/// Far above all times. The sum of larger numbers would begin again at 0, and end a wait too early.
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 48U;

struct Word {
  std::string_view name;
  std::uint64_t SigningFacts::* value;
};
constexpr Word kWords[] = {
    {"signed", &SigningFacts::signed_since}, {"max-ttl", &SigningFacts::max_ttl},
    {"cds", &SigningFacts::cds_since},       {"ds-seen", &SigningFacts::ds_seen},
    {"unsign", &SigningFacts::unsign_since}, {"ds-gone", &SigningFacts::ds_gone},
    {"unsigned", &SigningFacts::unsigned_since},
};

std::string facts_path(const std::string& folder) { return folder + "/facts"; }

/// One line: a word, a space, a number.
bool take_line(std::string_view line, SigningFacts& facts) {
  const std::size_t space = line.find(' ');
  const auto word = std::ranges::find(kWords, line.substr(0, space), &Word::name);
  if (word == std::end(kWords) || space == std::string_view::npos) return false;
  const std::string_view number = line.substr(space + 1);
  const char* const end = number.data() + number.size();
  std::uint64_t& value = facts.*(word->value);
  const auto parsed = std::from_chars(number.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end && value <= kMaxNumber;
}

}  // namespace

std::string text_of(const SigningFacts& facts) {
  std::string text(kFactsHead);
  for (const Word& word : kWords)
    if (facts.*(word.value) != 0) text += fmt::format("{} {}\n", word.name, facts.*(word.value));
  return text;
}

Result<SigningFacts> parse_signing_facts(std::string_view text, std::string_view path) {
  SigningFacts facts;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.front() == '#' || line.starts_with("x-")) continue;
    if (!take_line(line, facts))
      return fail(Errc::kCorrupt, "{}:{}: no word of this file and a number", path, number);
  }
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
