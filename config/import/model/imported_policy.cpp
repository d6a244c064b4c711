#include "config/import/model/imported_policy.h"

#include <algorithm>
#include <utility>

#include "config/settings/values.h"
#include "dns/text.h"

namespace pando::config {

namespace {

using std::chrono::seconds;

constexpr std::uint64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr std::uint64_t kMaxForeignTime = 10 * 365 * kDay;

/// Limits of dnssec-policies (config/tables.h).
constexpr seconds kMinValidity{kMinute}, kMaxValidity{365 * kDay}, kMaxWait{30 * kDay};

/// Spellings of algorithms without "-", in lower case.
constexpr std::pair<std::string_view, std::uint8_t> kSpellings[] = {
    {"rsasha256", 8},        {"rsasha512", 10},  {"ecdsa256", 13}, {"ecdsap256sha256", 13},
    {"ecdsa384", 14},        {"ecdsap384sha384", 14}, {"ed25519", 15},  {"ed448", 16},
};

/// Seconds of a unit's letter; 0: none. In ISO 8601's part for dates `m` is a month.
std::uint64_t unit_seconds(char unit, bool is_date) {
  switch (lower_case(unit)) {
    case 's':
      return 1;
    case 'm':
      return is_date ? 31 * kDay : kMinute;
    case 'h':
      return kHour;
    case 'd':
      return kDay;
    case 'w':
      return 7 * kDay;
    case 'y':
      return 365 * kDay;
    default:
      return 0;
  }
}

/// The reason against signing here; empty: there is none, and `policy` has what is not a time.
std::string obstacle_of(const ForeignSigning& signing, DnssecPolicy& policy) {
  policy.nsec3 = signing.nsec3;
  if (!signing.obstacle.empty()) return signing.obstacle;
  if (signing.algorithm.empty()) return {};
  policy.algorithm = signing_algorithm(signing.algorithm);
  if (policy.algorithm != 0) return {};
  return fmt::format("by algorithm {}, which does not sign here", signing.algorithm);
}

/// Takes the times within the limits of our policies; reports those outside of them.
class TimeTaking {
 public:
  TimeTaking(const SourceLine& at, std::string_view title, ImportReport& report)
      : at_(at), title_(title), report_(report) {}

  void take(std::string_view name, const std::optional<seconds>& wanted, seconds min, seconds max,
            Duration& out) {
    if (!wanted) return;
    const seconds taken = std::clamp(*wanted, min, max);
    out = taken;
    if (taken != *wanted)
      report_.note(at_, fmt::format("{}: {}", title_, name),
                   fmt::format("is {} seconds here, not {}", taken.count(), wanted->count()));
  }
  /// As `refresh` is to be less than five sixths of the validity.
  void take_refresh(const std::optional<seconds>& wanted, DnssecPolicy& policy) {
    if (!wanted || wanted->count() == 0) return;
    if (Duration(*wanted) * 6 < policy.validity * 5)
      policy.refresh = *wanted;
    else
      report_.note(at_, fmt::format("{}: refresh", title_),
                   "is the default here: signatures are renewed earlier");
  }

 private:
  const SourceLine& at_;
  std::string_view title_;
  ImportReport& report_;
};

}  // namespace

bool is_possible(const ForeignSigning& signing) {
  DnssecPolicy policy;
  return obstacle_of(signing, policy).empty();
}

bool take_signing(const ForeignSigning& signing, const SourceLine& at, std::string_view title,
                  ImportedConfiguration& out, ImportReport& report, ImportedZone& zone) {
  DnssecPolicy policy;
  if (const std::string obstacle = obstacle_of(signing, policy); !obstacle.empty()) {
    report.add(at, title, signed_reason(signing.server, signing.how, obstacle));
    return false;
  }
  policy.name = signing.policy_name;
  policy.make_keys = false;
  policy.cds = signing.cds;
  TimeTaking times(at, title, report);
  times.take("validity", signing.validity, kMinValidity, kMaxValidity, policy.validity);
  times.take_refresh(signing.refresh, policy);
  times.take("propagation", signing.propagation, seconds(0), kMaxWait, policy.propagation);
  times.take("parent-ds-ttl", signing.parent_ds_ttl, seconds(0), kMaxWait, policy.parent_ds_ttl);
  zone.options.dnssec = out.add_policy(policy);
  zone.key_import = signing.key_import;
  report.add(at, title,
             fmt::format("{} signs it ({}): it is not served before the manager has its keys",
                         signing.server, signing.how));
  if (!signing.rolls.empty())
    report.note(at, title, fmt::format("its keys stay, since no key is rolled by itself here ({})",
                                       signing.rolls));
  report.add_once(at, title,
                  {"its serial must not be lower than the one that secondaries have: see Migrate",
                   ImportEffect::kNone});
  return true;
}

std::optional<seconds> foreign_time(std::string_view text) {
  const bool is_iso = text.size() > 1 && lower_case(text.front()) == 'p';
  bool is_date = is_iso;
  if (is_iso) text.remove_prefix(1);
  std::uint64_t total = 0;
  bool has_number = false;
  while (!text.empty()) {
    if (is_date && lower_case(text.front()) == 't') {
      is_date = false;
      text.remove_prefix(1);
      continue;
    }
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = dns::parse_decimal(text.substr(0, digits), kMaxForeignTime);
    const bool is_plain = digits == text.size() && !is_iso && !has_number;
    const std::uint64_t unit =
        is_plain ? 1 : digits < text.size() ? unit_seconds(text[digits], is_date) : 0;
    if (!number || unit == 0 || *number > kMaxForeignTime / unit) return std::nullopt;
    total += *number * unit;
    if (total > kMaxForeignTime) return std::nullopt;
    has_number = true;
    text.remove_prefix(is_plain ? digits : digits + 1);
  }
  if (!has_number) return std::nullopt;
  return seconds(total);
}

std::string shell_word(std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(text, is_control)) return {};
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./+:@%=-").find(c) != std::string_view::npos;
  };
  if (!text.empty() && text.front() != '-' && std::ranges::all_of(text, is_plain))
    return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::uint8_t signing_algorithm(std::string_view name) {
  std::string word = lower_case(name);
  std::erase(word, '-');
  for (const auto& [spelling, number] : kSpellings)
    if (word == spelling || word == std::to_string(number)) return number;
  return 0;
}

}  // namespace pando::config
