#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/net/network.h"
#include "manager/signing/ds_question.h"
#include "manager/signing/signed_zones.h"

namespace pando::manager {

/// Asks a validating resolver (`dnssec-policies[].ds-check`) for the DS records of zones that wait
/// for their parent, and notes what it has seen as an operator would (`dnssec ds-seen`, `ds-gone`).
/// Answers that the resolver does not vouch for count for nothing.
///
/// Lives on the commit thread; the questions are asked on the network's.
class DsCheck {
 public:
  /// Longest pause between two questions for a zone; shorter where `propagation` is.
  static constexpr std::uint64_t kMaxPause = 60;  // seconds

  /// References outlive the object.
  DsCheck(asio::io_context& io, Network& network, const Committer& committer, SignedZones& zones)
      : io_(io), network_(network), committer_(committer), zones_(zones) {}

  void configure(const RuntimePtr& runtime) { runtime_ = runtime; }
  void stop() noexcept { *alive_ = false; }
  /// The zone may have come to wait for its parent, or to wait no more.
  void check_zone(const dns::Name& zone);
  /// Asks what is due; to be called each second or so.
  void check(std::chrono::steady_clock::time_point now);

 private:
  struct Asked;
  void ask(const std::string& key);
  void answered(const Asked& asked, const Result<ParentDs>& answer);

  asio::io_context& io_;
  Network& network_;
  const Committer& committer_;
  SignedZones& zones_;
  RuntimePtr runtime_;
  std::map<std::string, std::chrono::steady_clock::time_point> waiting_;  // when each is asked next
  std::size_t under_way_ = 0;
  std::map<std::string, std::string> told_;  // last reasons in the log
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// The DS records for which a zone waits at its parent: those of its keys, or none.
enum class AwaitedDs : std::uint8_t { kNothing, kKeys, kNone };
[[nodiscard]] AwaitedDs awaited_ds(const SigningFacts& facts, const SigningState& state) noexcept;

/// Notes that the parent has the DS records that the zone awaits, or has none any more. What is
/// known already is not known anew, so that no wait begins again.
void note_ds(SigningFacts& facts, bool has_ds, std::uint64_t now) noexcept;

}  // namespace pando::manager
