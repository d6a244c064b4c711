#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/address.h"
#include "manager/commit/committer.h"
#include "manager/commit/large_changesets.h"
#include "manager/update/update_request.h"

namespace pando::manager {

/// Passes updates to the committer. Small updates run on the commit thread, in groups; large
/// updates run beside it (LargeChangesets).
///
/// While a large update is computed, other updates may change the zone. Only later updates of the
/// same client (address and port) for that zone wait, so that a client's updates keep their order.
/// If the zone changed meanwhile, the computation was in vain and is repeated. All updates of that
/// zone wait then, so that the repetition succeeds. Each zone has at most one large update under
/// way.
///
/// Lives on the commit thread.
class UpdateCommits {
 public:
  struct Update {
    Endpoint client;
    UpdateMessage message;
    UpdateRules rules;
    zone::Author author;
    std::shared_ptr<const void> keeps;  ///< keeps the target of `rules` alive
    /// Checks on the commit thread, just before the update is applied, that the zone still takes
    /// updates. The zone's role may have changed while the update waited for a large one. May be
    /// empty.
    std::function<Status()> check;
    /// Called once on the commit thread. `verdict` has the RCODE that the update itself deserves.
    /// With NOERROR and an error in `applied`, the server could not store the update.
    std::function<void(const Refusal& verdict, const Result<zone::Applied>& applied)> done;
  };

  /// `committer` outlives the object.
  explicit UpdateCommits(Committer& committer) : committer_(committer) {}

  /// Null, the default: all updates run on the commit thread. `large` outlives the object.
  void set_large_changes(LargeChangesets* large) { large_ = large; }
  void submit(Update update);
  /// Number of updates waiting for a large update of their zone.
  [[nodiscard]] std::size_t held() const noexcept;

 private:
  struct Step;
  /// A zone's large update under way, with the updates waiting for it.
  struct UnderWay {
    Endpoint client;
    bool holds_all = false;
    std::deque<Update> held;
  };
  using Zones = std::unordered_map<std::string, UnderWay>;  // by dns::folded_key()
  [[nodiscard]] bool is_large(const Update& update) const;
  void submit_large(Update update, const std::string& zone);
  void ended(const std::string& zone);

  Committer& committer_;
  LargeChangesets* large_ = nullptr;
  Zones zones_;
};

}  // namespace pando::manager
