#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings/values.h"
#include "config/value.h"

/// Readers from a node of the document to a member of the settings; the rows of config/tables.h
/// name them. Each reader reports an invalid value and then leaves the member unchanged.
namespace pando::config {

inline constexpr std::uint64_t kNoMaximum = std::numeric_limits<std::uint64_t>::max();

/// Reads what `Parse` makes of the text.
template <auto Parse>
inline constexpr auto read_by = [](const Value& value, auto& out) {
  if (const auto text = value.scalar()) value.assign(Parse(*text), out);
};
inline constexpr auto read_bool = read_by<parse_bool>;
inline constexpr auto read_size_or_share = read_by<parse_size_or_share>;
inline constexpr auto read_address = read_by<IpAddress::from_text>;
inline constexpr auto read_prefix = read_by<IpPrefix::from_text>;
inline constexpr auto read_algorithm = read_by<dns::tsig_algorithm_from_text>;

template <std::uint64_t Min, std::uint64_t Max>
inline constexpr auto read_number = []<class Number>(const Value& value, Number& out) {
  static_assert(Max <= std::numeric_limits<Number>::max());
  std::uint64_t number = 0;
  const auto text = value.scalar();
  if (text && value.assign(parse_number(*text, Min, Max), number))
    out = static_cast<Number>(number);
};

/// Reads an enumeration by a table of its words.
template <const auto& Words>
inline constexpr auto read_word = [](const Value& value, auto& out) {
  const auto text = value.scalar();
  if (!text) return;
  std::string known;
  for (const auto& [word, meaning] : Words) {
    if (*text == word) return static_cast<void>(out = meaning);
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  value.fail(fmt::format("'{}' is none of {}", *text, known));
};

/// Reads a list of different words of such a table; at least one.
template <const auto& Words>
inline constexpr auto read_words = []<class Word>(const Value& value, std::vector<Word>& out) {
  std::vector<Word> words;
  const std::size_t errors_before = value.context().problems.error_count();
  value.for_each([&](const Value& element) {
    const std::size_t errors_so_far = value.context().problems.error_count();
    Word word{};
    read_word<Words>(element, word);
    if (value.context().problems.error_count() != errors_so_far) return;
    if (std::find(words.begin(), words.end(), word) != words.end())
      return element.fail("stands in the list twice");
    words.push_back(word);
  });
  if (value.context().problems.error_count() != errors_before) return;
  if (words.empty()) return value.fail("is empty");
  out = std::move(words);
};

/// Text for people, the system or a TXT record: printable, not empty, at most 255 bytes.
void read_text(const Value& value, std::string& out);
/// The name of a host in a certificate; lower case, without a final dot.
void read_host_name(const Value& value, std::string& out);
/// Names of hosts without a port: letters, digits, '.', '-' and '_', which become lower case.
void read_host_names(const Value& value, std::vector<std::string>& out);
/// A name that a network interface may have; at most 15 bytes.
void read_interface(const Value& value, std::string& out);
void read_path(const Value& value, std::string& out);           ///< made absolute
/// A program by its absolute path, and its arguments; an empty list is no program.
void read_command(const Value& value, std::vector<std::string>& out);
void read_relative_path(const Value& value, std::string& out);  ///< as written

void read_size(const Value& value, std::uint64_t min, std::uint64_t max, std::uint64_t& out);
void read_duration(const Value& value, Duration min, Duration max, Duration& out);

template <std::uint64_t Min, std::uint64_t Max>
inline constexpr auto read_size_in =
    [](const Value& value, std::uint64_t& out) { read_size(value, Min, Max, out); };
template <std::int64_t MinMs, std::int64_t MaxMs>
inline constexpr auto read_duration_in = [](const Value& value, Duration& out) {
  read_duration(value, Duration(MinMs), Duration(MaxMs), out);
};

void read_duration_or_off(const Value& value, std::optional<Duration>& out);
void read_duration_range(const Value& value, DurationRange& out);

void read_endpoints(const Value& value, std::uint16_t default_port, std::vector<Endpoint>& out);
template <std::uint16_t DefaultPort>
inline constexpr auto read_endpoints_at =
    [](const Value& value, std::vector<Endpoint>& out) { read_endpoints(value, DefaultPort, out); };
/// Stands for no port: the remote's transport has a default of its own.
inline constexpr std::uint16_t kPortByTransport = 0;
void read_prefixes(const Value& value, std::vector<IpPrefix>& out);
/// SHA-256 digests in base64.
void read_pins(const Value& value, std::vector<Bytes>& out);

void read_workers(const Value& value, Workers& out);
void read_cookie_secrets(const Value& value, std::vector<Bytes>& out);
void read_secret(const Value& value, Bytes& out);
/// The path of a file with nothing but a secret in base64, for its owner and group alone.
void read_secret_file(const Value& value, Bytes& out);
/// A secret that clients send as plain text, and the path of a file that has only such a secret.
void read_text_secret(const Value& value, std::string& out);
void read_text_secret_file(const Value& value, std::string& out);

void read_name(const Value& value, dns::Name& out);
void read_names(const Value& value, std::vector<dns::Name>& out);
void read_zone_patterns(const Value& value, std::vector<dns::Name>& out);  ///< not empty
void read_types(const Value& value, std::vector<dns::RRType>& out);

/// References: the named object must exist when the reference is read.
[[nodiscard]] std::optional<dns::Name> key_reference(const Value& value);
inline constexpr auto read_key_reference = [](const Value& value, auto& out) {
  if (const auto name = key_reference(value)) out = *name;
};
/// The name of a remote that a certificate can prove to be, or kAnyTlsPeer.
void read_tls_reference(const Value& value, RareValue<std::string>& out);
void read_remote_references(const Value& value, std::vector<std::string>& out);
/// A consumed catalog, which need not exist any more.
void read_member_of(const Value& value, RareValue<dns::Name>& out);
void read_catalog_reference(const Value& value, RareValue<dns::Name>& out);
void read_template_reference(const Value& value, std::string& out);
/// The name of a policy; empty for "off".
void read_dnssec_policy(const Value& value, std::string& out);

}  // namespace pando::config
