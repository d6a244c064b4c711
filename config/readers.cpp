#include "config/readers.h"

#include <algorithm>
#include <filesystem>

#include "base/words.h"
#include "config/files.h"
#include "dns/encoding.h"

namespace pando::config {

namespace {

constexpr std::size_t kMaxTextBytes = 255;      // some become one string of TXT
constexpr std::size_t kMaxPathBytes = 4095;     // PATH_MAX without its final NUL
constexpr std::size_t kPinBytes = 32;           // SHA-256
/// A key and the next one, of a certificate and of one in reserve (RFC 7858 §4.2).
constexpr std::size_t kMaxPins = 4;
constexpr std::size_t kCookieSecretBytes = 16;  // RFC 9018 §4.4: a SipHash key
/// RFC 8945 §4.2 (by RFC 2104 §3) discourages keys shorter than the hash; below 16 octets a key is
/// a mistake.
constexpr std::size_t kWeakSecretBytes = 16;

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

/// A scalar that is not empty, not too long and without control characters.
std::optional<std::string_view> printable(const Value& value, std::size_t max_bytes) {
  const auto text = value.scalar();
  if (!text) return std::nullopt;
  if (!text->empty() && text->size() <= max_bytes && !has_control(*text)) return text;
  value.fail(text->empty() ? "is empty"
                           : fmt::format("is not printable text of at most {} bytes", max_bytes));
  return std::nullopt;
}

/// Reads every element with `read`; a repeated element is an error.
template <class T, class Read>
void read_unique(const Value& value, std::vector<T>& out, Read read) {
  out.clear();
  value.for_each([&](const Value& element) {
    T item{};
    if (!read(element, item)) return;
    if (std::find(out.begin(), out.end(), item) != out.end())
      return element.fail("stands in the list twice");
    out.push_back(std::move(item));
  });
}

bool read_one_name(const Value& value, dns::Name& out) {
  const auto text = value.scalar();
  return text && value.assign(parse_name(*text), out);
}

bool read_one_host(const Value& value, std::string& out) {
  const auto text = value.scalar();
  if (!text) return false;
  out = lower_case(*text);
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  const bool good = !out.empty() && out.size() <= kMaxTextBytes &&
                    out.find_first_not_of(kAllowed) == std::string::npos;
  if (!good) value.fail(fmt::format("'{}' is no name of a host, which has no port", *text));
  return good;
}

void decode_secret(const Value& value, std::string_view base64, Bytes& out) {
  if (!value.assign(decode_base64(base64), out)) return;
  if (out.empty()) return value.fail("is empty");
  if (out.size() < kWeakSecretBytes)
    value.warn(fmt::format("a secret of {} bytes can be guessed", out.size()));
}

/// The text of a file that has nothing but a secret, or nothing once a problem is reported.
std::optional<std::string> read_file_of_secret(const Value& value, bool has_secret) {
  std::string path;
  read_path(value, path);
  if (path.empty()) return std::nullopt;
  const auto refuse = [&value](std::string_view reason) {
    value.fail(reason);
    return std::nullopt;
  };
  if (has_secret) return refuse("the key has a 'secret' already");
  const auto fd = open_regular_file(path);
  if (!fd) return refuse(fd.error().text);
  if (is_open_to_others(*fd))
    return refuse(fmt::format("other users can read or write {}: chmod o= {}", path, path));
  const auto fingerprint = fold_file(value.context().fingerprint, *fd, path);
  auto text = read_open_file(*fd, path);
  if (!fingerprint) return refuse(fingerprint.error().text);
  if (!text) return refuse(text.error().text);
  value.context().sources.secrets.push_back(path);
  value.context().fingerprint = *fingerprint;
  text->resize(text->find_last_not_of(" \t\r\n") + 1);  // editors end a file with a line feed
  return std::move(*text);
}

/// A secret that can stand in a header of HTTP: visible ASCII (RFC 9110 §5.5).
bool is_shown_secret(const Value& value, std::string_view text) {
  constexpr std::size_t kMaxBytes = 512;
  const bool visible =
      std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  const bool fits = !text.empty() && text.size() <= kMaxBytes && visible;
  if (!fits) value.fail(fmt::format("is not 1 to {} visible ASCII characters", kMaxBytes));
  if (fits && text.size() < kWeakSecretBytes)
    value.warn(fmt::format("a secret of {} bytes can be guessed", text.size()));
  return fits;
}

bool read_remote(const Value& value, std::string& out) {
  const auto name = value.scalar();
  if (!name) return false;
  if (value.context().settings.find_remote(*name) == nullptr) {
    value.fail(fmt::format("no remote is named '{}'", *name));
    return false;
  }
  out = *name;
  return true;
}

/// read_remote() for a remote to which this server sends.
bool read_partner(const Value& value, std::string& out) {
  if (!read_remote(value, out)) return false;
  if (!value.context().settings.find_remote(out)->tls) return true;
  value.fail(fmt::format("remote '{}' has 'tls': nothing is sent over TLS yet, it may stand in "
                         "rules alone", out));
  return false;
}

}  // namespace

void read_text(const Value& value, std::string& out) {
  if (const auto text = printable(value, kMaxTextBytes)) out = *text;
}

void read_host_name(const Value& value, std::string& out) {
  std::string host;
  if (!read_one_host(value, host)) return;
  if (host.ends_with('.')) host.pop_back();  // names in certificates have none (RFC 5280 §4.2.1.6)
  if (host.empty()) return value.fail("'.' is no name of a host");
  out = std::move(host);
}

void read_host_names(const Value& value, std::vector<std::string>& out) {
  read_unique(value, out, read_one_host);
}

void read_interface(const Value& value, std::string& out) {
  constexpr std::size_t kMaxInterfaceBytes = 15;  // IFNAMSIZ with its final NUL
  const auto text = printable(value, kMaxTextBytes);
  if (!text) return;
  if (text->size() > kMaxInterfaceBytes || text->find_first_of("/ :") != std::string::npos)
    return value.fail(fmt::format("'{}' is no name of a network interface", *text));
  out = *text;
}

void read_path(const Value& value, std::string& out) {
  const auto text = printable(value, kMaxPathBytes);
  if (!text) return;
  out = (std::filesystem::path(value.context().folder) / *text).lexically_normal().string();
}

void read_command(const Value& value, std::vector<std::string>& out) {
  constexpr std::size_t kMaxWords = 64;
  constexpr std::size_t kMaxBytes = 4096;
  out.clear();
  std::size_t bytes = 0;
  value.for_each([&](const Value& element) {
    const auto word = printable(element, kMaxPathBytes);
    if (!word) return;
    bytes += word->size();
    out.emplace_back(*word);
  });
  if (!out.empty() && !out.front().starts_with('/'))
    value.fail("begins with no absolute path of a program; there is no shell");
  if (out.size() > kMaxWords || bytes > kMaxBytes)
    value.fail(fmt::format("has more than {} words or {} bytes", kMaxWords, kMaxBytes));
}

void read_relative_path(const Value& value, std::string& out) {
  if (const auto text = printable(value, kMaxPathBytes)) out = *text;
}

void read_size(const Value& value, std::uint64_t min, std::uint64_t max, std::uint64_t& out) {
  const auto text = value.scalar();
  std::uint64_t bytes = 0;
  if (!text || !value.assign(parse_size(*text), bytes)) return;
  if (bytes >= min && bytes <= max)
    out = bytes;
  else
    value.fail(fmt::format("{} is not between {} and {} bytes", *text, min, max));
}

void read_duration(const Value& value, Duration min, Duration max, Duration& out) {
  const auto text = value.scalar();
  Duration duration{};
  if (!text || !value.assign(parse_duration(*text), duration)) return;
  if (duration >= min && duration <= max)
    out = duration;
  else
    value.fail(fmt::format("{} is not between {} and {} ms", *text, min.count(), max.count()));
}

void read_duration_or_off(const Value& value, std::optional<Duration>& out) {
  const auto text = value.scalar();
  if (!text) return;
  if (*text == "off") return out.reset();
  Duration duration{};
  read_duration(value, std::chrono::seconds(1), std::chrono::years(1), duration);
  if (duration.count() != 0) out = duration;
}

void read_duration_range(const Value& value, DurationRange& out) {
  std::vector<Duration> bounds;
  value.for_each([&](const Value& element) {
    Duration bound{};
    read_duration(element, Duration(100), std::chrono::years(1), bound);
    if (bound.count() != 0) bounds.push_back(bound);
  });
  if (bounds.size() != 2 || bounds[0] > bounds[1])
    return value.fail("needs two durations, the smaller one first");
  out = {bounds[0], bounds[1]};
}

void read_endpoints(const Value& value, std::uint16_t default_port, std::vector<Endpoint>& out) {
  read_unique(value, out, [&](const Value& element, Endpoint& endpoint) {
    const auto text = element.scalar();
    if (!text || !element.assign(parse_endpoint(*text, default_port), endpoint)) return false;
    const IpAddress& address = endpoint.address;
    if (!address.is_link_local() || address.scope() != 0) return true;
    // RFC 4007 §6: each interface has such addresses of its own.
    element.fail(fmt::format("needs its interface: '{0}%eth0'", to_text(address)));
    return false;
  });
}

void read_pins(const Value& value, std::vector<Bytes>& out) {
  read_unique(value, out, [](const Value& element, Bytes& pin) {
    const auto text = element.scalar();
    if (!text || !element.assign(decode_base64(*text), pin)) return false;
    if (pin.size() != kPinBytes)
      element.fail(fmt::format("is no SHA-256 in base64: {} bytes", pin.size()));
    return pin.size() == kPinBytes;
  });
  if (out.size() > kMaxPins) value.fail(fmt::format("at most {} pins", kMaxPins));
}

void read_prefixes(const Value& value, std::vector<IpPrefix>& out) {
  read_unique(value, out, [](const Value& element, IpPrefix& prefix) {
    const auto text = element.scalar();
    return text && element.assign(IpPrefix::from_text(*text), prefix);
  });
}

void read_workers(const Value& value, Workers& out) {
  constexpr std::uint64_t kMaxWorkers = 1024;  // slots of the store (shm/slots.h)
  const auto text = value.scalar();
  if (!text) return;
  if (*text == "auto") return static_cast<void>(out = {Workers::Mode::kAuto, 0});
  if (*text == "external") return static_cast<void>(out = {Workers::Mode::kExternal, 0});
  const auto count = parse_number(*text, 1, kMaxWorkers);
  if (count)
    out = {Workers::Mode::kFixed, static_cast<std::uint32_t>(*count)};
  else
    value.fail(fmt::format("'{}' is neither auto, external nor a number from 1 to {}", *text,
                           kMaxWorkers));
}

void read_cookie_secrets(const Value& value, std::vector<Bytes>& out) {
  value.context().note_secret(value.line());
  read_unique(value, out, [](const Value& element, Bytes& secret) {
    const auto text = element.scalar();
    if (!text || !element.assign(dns::hex_decode(*text), secret)) return false;
    if (secret.size() != kCookieSecretBytes) element.fail("needs 32 hexadecimal digits");
    return secret.size() == kCookieSecretBytes;
  });
}

void read_secret(const Value& value, Bytes& out) {
  value.context().note_secret(value.line());
  if (const auto text = value.scalar()) decode_secret(value, *text, out);
}

void read_secret_file(const Value& value, Bytes& out) {
  if (!value.context().options.read_key_files) {
    out.assign(1, 0);  // a key without a secret would be an error
    return;
  }
  if (const auto text = read_file_of_secret(value, !out.empty())) decode_secret(value, *text, out);
}

void read_text_secret(const Value& value, std::string& out) {
  value.context().note_secret(value.line());
  const auto text = value.scalar();
  if (text && is_shown_secret(value, *text)) out = *text;
}

void read_text_secret_file(const Value& value, std::string& out) {
  if (!value.context().options.read_http_key_files) {
    out.assign(1, '-');  // a key without a secret would be an error
    return;
  }
  const auto text = read_file_of_secret(value, !out.empty());
  if (text && is_shown_secret(value, *text)) out = *text;
}

void read_name(const Value& value, dns::Name& out) { read_one_name(value, out); }

void read_names(const Value& value, std::vector<dns::Name>& out) {
  read_unique(value, out, read_one_name);
}

void read_zone_patterns(const Value& value, std::vector<dns::Name>& out) {
  read_names(value, out);
  // No pattern would mean all zones, which nobody means who writes an empty list.
  if (out.empty()) value.fail("names no zone");
}

void read_types(const Value& value, std::vector<dns::RRType>& out) {
  read_unique(value, out, [](const Value& element, dns::RRType& type) {
    const auto text = element.scalar();
    if (!text || !element.assign(dns::rrtype_from_text(*text), type)) return false;
    if (dns::is_meta_type(type)) element.fail("no zone has records of this type");
    return !dns::is_meta_type(type);
  });
}

std::optional<dns::Name> key_reference(const Value& value) {
  dns::Name name;
  if (!read_one_name(value, name)) return std::nullopt;
  if (value.context().settings.find_key(name) != nullptr) return name;
  value.fail(fmt::format("no key is named '{}'", dns::to_text(name)));
  return std::nullopt;
}

void read_remote_references(const Value& value, std::vector<std::string>& out) {
  read_unique(value, out, read_partner);
}

void read_tls_reference(const Value& value, RareValue<std::string>& out) {
  if (value.node().is_scalar() && value.scalar() == kAnyTlsPeer)
    return static_cast<void>(out = std::string(kAnyTlsPeer));
  std::string name;
  if (!read_remote(value, name)) return;
  const Remote& remote = *value.context().settings.find_remote(name);
  if (!remote.tls)
    return value.fail(fmt::format("remote '{}' has no 'tls'", name));
  if (!remote.tls->authenticates())
    return value.fail(fmt::format("no certificate can prove to be remote '{}': its 'tls' has "
                                  "neither 'hostname' nor 'pins'", name));
  out = std::move(name);
}

void read_member_of(const Value& value, RareValue<dns::Name>& out) {
  if (dns::Name name; read_one_name(value, name)) out = name;
}

void read_catalog_reference(const Value& value, RareValue<dns::Name>& out) {
  dns::Name name;
  if (!read_one_name(value, name)) return;
  for (const Catalog& catalog : value.context().settings.catalogs)
    if (catalog.zone == name && catalog.role == Catalog::Role::kProducer)
      return static_cast<void>(out = name);
  value.fail(fmt::format("no catalog '{}' is produced here", dns::to_text(name)));
}

void read_template_reference(const Value& value, std::string& out) {
  const auto name = value.scalar();
  if (!name) return;
  if (!value.context().templates.contains(*name))
    return value.fail(fmt::format("no template is named '{}'", *name));
  out = *name;
}

void read_dnssec_policy(const Value& value, std::string& out) {
  const auto name = value.scalar();
  if (!name) return;
  if (*name == kNoDnssecPolicy) return out.clear();
  if (!value.context().settings.dnssec_policy(*name))
    return value.fail(fmt::format("no policy is named '{}' (dnssec-policies)", *name));
  out = *name;
}

}  // namespace pando::config
