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

/// Brings updates to the committer: small ones on the commit thread, in groups, and those that
/// change much beside it (LargeChangesets).
///
/// A large update is worked out while others change its zone. Only what the same client (address
/// and port) asks of that zone meanwhile waits for it, so that a client's updates are done in the
/// order in which they came. When the zone has changed and the work was in vain, all updates of
/// that zone wait, or it would be in vain again. Of a zone one large update is under way at a time.
///
/// Lives on the commit thread.
class UpdateCommits {
 public:
  struct Update {
    Endpoint client;
    UpdateMessage message;
    UpdateRules rules;
    std::shared_ptr<const void> keeps;  ///< what `rules` points to
    /// On the commit thread, when it is done: whether the zone still takes updates, since it may
    /// have waited for a large one; may be empty.
    std::function<Status()> check;
    /// On the commit thread, once. `verdict` has the RCODE that the update itself deserves; when
    /// that is NOERROR and there is an error all the same, the server could not store it.
    std::function<void(Refusal& verdict, const Result<zone::Applied>& applied)> done;
  };

  /// It outlives the object.
  explicit UpdateCommits(Committer& committer) : committer_(committer) {}

  /// Without one, or with null, everything is done on the commit thread. It outlives the object.
  void set_large_changes(LargeChangesets* large) { large_ = large; }
  void submit(Update update);
  /// Updates that wait for a large one of their zone.
  [[nodiscard]] std::size_t held() const noexcept;

 private:
  struct Step;
  /// The large update of a zone that is under way, and what waits for it.
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
