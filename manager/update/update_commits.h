#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/address.h"
#include "manager/change/change_road.h"
#include "manager/update/update_request.h"

namespace pando::manager {

/// Hands updates to the road of changes. Small updates share versions; large updates are computed
/// beside the commit thread.
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
    std::function<void(const Refusal& verdict, const Result<ChangeOutcome>& applied)> done;
  };

  /// References outlive the object.
  UpdateCommits(const Committer& committer, ChangeRoad& road)
      : committer_(committer), road_(road) {}

  void submit(Update update);
  /// Has later updates of the zone wait, until each hold() has had its release().
  void hold(const dns::Name& zone);
  void release(const dns::Name& zone);
  /// Number of updates waiting for a large update of their zone.
  [[nodiscard]] std::size_t held() const noexcept;

 private:
  struct Step;
  /// A zone's large update under way, or others that hold the zone's updates, with those that wait.
  struct UnderWay {
    Endpoint client;
    bool holds_all = false;
    std::size_t holders = 0;
    std::deque<Update> held;
  };
  using Zones = std::unordered_map<std::string, UnderWay>;  // by dns::folded_key()
  [[nodiscard]] bool is_large(const Update& update) const;
  void submit_small(Update update);
  void submit_large(Update update, const std::string& zone);
  void ended(const std::string& zone);

  const Committer& committer_;
  ChangeRoad& road_;
  Zones zones_;
};

}  // namespace pando::manager
