#include "http/serve/access.h"

#include <algorithm>

#include "base/address.h"
#include "base/words.h"
#include "ipc/secret_digest.h"

namespace pando::http {

namespace {

/// The key that the request shows: X-API-Key, else a bearer token (RFC 6750 §2.1).
std::string_view shown_key(const Request& request) {
  if (!request.api_key.empty()) return request.api_key;
  constexpr std::string_view kScheme = "bearer ";  // RFC 9110 §11.1: any case
  std::string_view value = request.authorization;
  if (!equal_but_for_case(value.substr(0, kScheme.size()), kScheme)) return {};
  value.remove_prefix(kScheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

/// The host of a Host field without port and final dot, in lower case. An IPv6 address is without
/// its brackets.
std::string host_of(std::string_view field) {
  if (field.starts_with('[')) {
    const std::size_t end = field.find(']');
    return end == std::string_view::npos ? "" : std::string(field.substr(1, end - 1));
  }
  std::string host = lower_case(field.substr(0, field.rfind(':')));
  if (host.ends_with('.')) host.pop_back();
  return host;
}

}  // namespace

std::vector<KnownKey> known_keys(const std::vector<AccessKey>& keys) {
  std::vector<KnownKey> known;
  for (const AccessKey& key : keys)
    known.push_back({ipc::secret_digest(key.secret), {key.name, "", key.role, key.zones}});
  return known;
}

/// A request without the field comes from no browser.
bool Access::is_addressed_by(const Request& request) const {
  if (!is_open_ || request.host.empty()) return true;
  const std::string host = host_of(request.host);
  return host == "localhost" || IpAddress::from_text(host).has_value() ||
         std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end();
}

Response Access::misdirected() {
  return text_response(421, "this server has another name: use its address or localhost, or list "
                            "the name in http.hosts of the configuration");
}

bool same_secret(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  volatile unsigned difference = 0;  // volatile: no early end
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = difference | static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^
                                                    static_cast<unsigned char>(b[i]));
  return difference == 0;
}

const AccessKey* Access::key_of(const Request& request) const {
  if (is_open_) return &everybody_;
  const std::string_view shown = shown_key(request);
  if (shown.empty()) return nullptr;
  const std::string digest = ipc::secret_digest(shown);
  const AccessKey* found = nullptr;
  for (const KnownKey& known : keys_)  // all of them, whichever fits
    if (same_secret(digest, known.digest)) found = &known.key;
  return found;
}

Response Access::refusal(const Request& request) {
  const bool shown = !shown_key(request).empty();
  Response response = text_response(401, shown ? "unknown key" : "a key is needed");
  response.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"pando\"");
  return response;
}

}  // namespace pando::http
