#include "config/import/nsd_syntax.h"

#include <algorithm>
#include <limits>

#include "base/words.h"

namespace pando::config {

namespace {

constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

constexpr std::string_view kNsdSections =
    " server zone pattern key remote-control tls-auth dnstap verify ";

/// Keywords of settings, up to NSD 4.14. Any of them ends the values of the setting before it.
constexpr std::string_view kNsdSettings =
    " algorithm allow-axfr-fallback allow-notify allow-proxy allow-query answer-cookie "
    "auth-domain-name catalog catalog-member-pattern catalog-producer-zone client-cert "
    "client-key client-key-pw confine-to-zone control-cert-file control-enable control-interface "
    "control-key-file control-port cookie-secret cookie-secret-file cookie-staging-secret "
    "cpu-affinity create-ixfr chroot database debug-mode difffile do-ip4 do-ip6 dnstap-enable "
    "dnstap-identity dnstap-ip dnstap-log-auth-query-messages dnstap-log-auth-response-messages "
    "dnstap-send-identity dnstap-send-version dnstap-socket-path dnstap-tls "
    "dnstap-tls-cert-bundle dnstap-tls-client-cert-file dnstap-tls-client-key-file "
    "dnstap-tls-server-name dnstap-version drop-updates enable hide-identity hide-version "
    "identity include include-pattern interface ip-address ip-freebind ip-transparent ip4-only "
    "ip6-only ipv4-edns-size ipv6-edns-size ixfr-number ixfr-size log-only-syslog log-time-ascii "
    "log-time-iso logfile max-refresh-time max-retry-time metrics-enable metrics-interface "
    "metrics-path metrics-port min-expire-time min-refresh-time min-retry-time minimal-responses "
    "multi-master-check multi-primary-check name notify notify-retry nsid outgoing-interface "
    "outgoing-tcp-mss pidfile port provide-xfr proxy-protocol-port receive-buffer-size "
    "refuse-any reload-config request-xfr reuseport round-robin rrl-ipv4-prefix-length "
    "rrl-ipv6-prefix-length rrl-ratelimit rrl-size rrl-slip rrl-whitelist "
    "rrl-whitelist-ratelimit secret send-buffer-size server-cert-file server-count "
    "server-key-file size-limit-xfr statistics store-ixfr tcp-count tcp-listen-queue tcp-mss "
    "tcp-query-count tcp-reject-overflow tcp-timeout tls-auth-port tls-auth-xfr-only "
    "tls-cert-bundle tls-port tls-service-key tls-service-ocsp tls-service-pem use-systemd "
    "username verbosity verifier verifier-count verifier-feed-zone verifier-timeout verify-zone "
    "verify-zones version xdp-bpffs-path xdp-force-copy xdp-interface xdp-program-load "
    "xdp-program-path xfrd-cpu-affinity xfrd-reload-timeout xfrd-tcp-max xfrd-tcp-pipeline "
    "xfrdfile xfrdir zonefile zonefiles-check zonefiles-write zonelistfile zonesdir zonestats ";

/// `server-3-cpu-affinity` has the number of a process in it.
bool is_process_affinity(std::string_view key) {
  return key.starts_with("server-") && key.ends_with("-cpu-affinity");
}

bool is_known(std::string_view key) {
  return is_listed(kNsdSections, key) || is_listed(kNsdSettings, key) || is_process_affinity(key);
}

/// One word; backslashes stay in it, as NSD's lexer leaves them.
struct NsdWord {
  std::string text;
  int line = 0;
  bool quoted = false;

  /// `key:` without its colon and in lower case; empty for other words.
  [[nodiscard]] std::string key() const {
    if (quoted || text.size() < 2 || text.back() != ':' ||
        !std::all_of(text.begin(), text.end() - 1, is_key_char))
      return {};
    return lower_case(std::string_view(text).substr(0, text.size() - 1));
  }
};

/// The most values of a setting (NSD's configparser.y), of which the first ones are `values`.
std::size_t most_values(std::string_view key, const std::vector<std::string>& values) {
  const std::string first = values.empty() ? std::string() : lower_case(values.front());
  if (key == "request-xfr") return first == "axfr" || first == "udp" ? 4 : 3;
  if (key == "provide-xfr") return 3;  // the last one names a tls-auth
  if (key == "notify" || key == "allow-notify" || key == "allow-query") return 2;
  if (key == "verifier" || key == "cpu-affinity" || !is_known(key)) return kAnyNumber;
  return 1;
}

/// Options of an address: `ip-address: 192.0.2.1 servers=1-2 bindtodevice=yes`.
bool is_address_option(std::string_view key, std::string_view word) {
  const std::string option = lower_case(word.substr(0, word.find('=') + 1));
  return (key == "ip-address" || key == "interface") &&
         (option == "servers=" || option == "bindtodevice=" || option == "setfib=");
}

/// The parser of one file.
class NsdParser {
 public:
  NsdParser(const ImportText& input, ImportFiles& files, ImportReport& report,
            std::vector<SettingSection>& out)
      : name_(input.name), text_(input.text), files_(files), report_(report), out_(out) {}

  Status parse() {
    if (auto read = next(); !read) return read;
    while (!at_end_)
      if (auto parsed = parse_setting(); !parsed) return parsed;
    return {};
  }

 private:
  Status fail_at(int line, std::string_view reason) const {
    return fail(Errc::kInvalid, "{}:{}: {}", *name_, line, reason);
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
        line_ += text_[at_++] == '\n';
      else if (c == '\\' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'))
        ++at_;  // NSD's lexer drops it
      else
        return;
    }
  }

  /// Reads the next word, or the end.
  Status next() {
    skip_blanks();
    word_ = {{}, line_, false};
    at_end_ = at_ >= text_.size();
    if (at_end_) return {};
    if (text_[at_] == '"') return quoted();
    while (at_ < text_.size() &&
           std::string_view("\" \t\r\n").find(text_[at_]) == std::string::npos) {
      const bool escape = text_[at_] == '\\';
      if (escape && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n')) break;
      word_.text += text_.substr(at_, escape ? 2 : 1);
      at_ += escape ? 2 : 1;
    }
    return {};
  }

  Status quoted() {
    word_.quoted = true;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) word_.text += text_[at_++];
      line_ += text_[at_] == '\n';
      word_.text += text_[at_];
    }
    if (at_ >= text_.size()) return fail_at(word_.line, "a quoted text without an end");
    ++at_;
    return {};
  }

  /// A word that begins a section or a setting is read.
  Status parse_setting() {
    const SourceLine at{name_, word_.line};
    const std::string key = word_.key();
    if (key.empty()) return fail_at(at.line, "is not 'key: value'");
    if (auto counted = files_.count_statement(); !counted)
      return fail_at(at.line, counted.error().text);
    if (auto read = next(); !read) return read;
    if (key == "include") return include(at);
    if (is_listed(kNsdSections, key)) {
      out_.push_back({at, key, {}});
      return {};
    }
    if (out_.empty()) return fail_at(at.line, fmt::format("'{}' stands in no section", key));
    LineSetting setting{at, key, {}, false};
    if (auto read = read_values(setting); !read) return read;
    if (setting.values.empty() && is_known(key) && !key.ends_with("cpu-affinity"))
      return fail_at(at.line, fmt::format("'{}' has no value", key));
    out_.back().settings.push_back(std::move(setting));
    return {};
  }

  Status read_values(LineSetting& setting) {
    const bool known = is_known(setting.key);
    while (!at_end_) {
      const std::string next_key = word_.key();
      if (known ? is_known(next_key) : !next_key.empty() || word_.line != setting.at.line) break;
      if (setting.values.size() >= most_values(setting.key, setting.values) &&
          (word_.quoted || !is_address_option(setting.key, word_.text)))
        break;
      setting.values.push_back(std::move(word_.text));
      if (auto read = next(); !read) return read;
    }
    return {};
  }

  Status include(const SourceLine& at) {
    if (at_end_) return fail_at(at.line, "'include' has no value");
    const std::string pattern = std::move(word_.text);
    auto included = files_.include(at, pattern, report_, [&](const ImportText& text) {
      return NsdParser(text, files_, report_, out_).parse();
    });
    return included ? next() : included;
  }

  std::shared_ptr<const std::string> name_;
  std::string_view text_;
  ImportFiles& files_;
  ImportReport& report_;
  std::vector<SettingSection>& out_;
  std::size_t at_ = 0;
  int line_ = 1;
  NsdWord word_;
  bool at_end_ = false;
};

}  // namespace

Result<std::vector<SettingSection>> parse_nsd(const ImportText& text, ImportFiles& files,
                                              ImportReport& report) {
  std::vector<SettingSection> sections;
  if (auto parsed = NsdParser(text, files, report, sections).parse(); !parsed) return pass(parsed);
  return sections;
}

}  // namespace pando::config
