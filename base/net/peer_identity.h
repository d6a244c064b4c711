#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace pando {

/// Written in a rule in the place of a remote's name: whoever comes over TLS.
inline constexpr std::string_view kAnyTlsPeer = "any";

/// The other end of a connection over TLS, and what its certificate has proved. A client over UDP
/// or plain TCP has no PeerIdentity at all, so no rule about TLS can match it.
struct PeerIdentity {
  /// Names of the remotes (`remotes[].name`) whose demands the certificate meets; empty without a
  /// certificate.
  std::vector<std::string> remotes;

  /// True if a rule with `tls: NAME` is about this peer.
  [[nodiscard]] bool is(std::string_view name) const noexcept {
    return name == kAnyTlsPeer || std::find(remotes.begin(), remotes.end(), name) != remotes.end();
  }
  bool operator==(const PeerIdentity&) const = default;
};

/// For people: the names of the remotes, "second,third"; empty if nothing was proved.
[[nodiscard]] inline std::string to_text(const PeerIdentity& peer) {
  std::string text;
  for (const std::string& remote : peer.remotes) text += (text.empty() ? "" : ",") + remote;
  return text;
}

}  // namespace pando
