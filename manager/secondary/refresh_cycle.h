#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/address.h"
#include "dns/name.h"
#include "manager/notify/notify_handler.h"

namespace pando::manager {

/// A primary of a zone, with the name of its TSIG key.
struct Primary {
  Endpoint endpoint;
  std::optional<dns::Name> key;
  bool operator==(const Primary&) const = default;
};
using Primaries = std::vector<Primary>;

/// Which primary of one zone is asked next, and how. A refresh cycle asks one primary after another
/// until one has a newer version. NOTIFYs and orders that come during a cycle take effect at its
/// end. No clock and no I/O: Refresher says when.
class RefreshCycle {
 public:
  /// How the next attempt asks its primary.
  struct Request {
    bool whole_zone = false;              ///< by AXFR
    bool any_serial = false;              ///< takes a zone that is older than ours, too
    std::optional<dns::Serial> notified;  ///< a serial that this primary has notified
  };
  /// A cycle that should begin. `paced`: anybody could have asked for it.
  struct Wish {
    bool paced = false;
  };

  RefreshCycle() = default;
  explicit RefreshCycle(Primaries primaries) : primaries_(std::move(primaries)) {}

  [[nodiscard]] const Primaries& primaries() const noexcept { return primaries_; }
  /// The primary that is asked now or next; there has to be one.
  [[nodiscard]] const Primary& primary() const { return primaries_[turn()]; }
  /// An attempt at a primary is under way.
  [[nodiscard]] bool running() const noexcept { return running_; }
  /// A primary of this cycle has our version.
  [[nodiscard]] bool confirmed() const noexcept { return confirmed_; }
  /// The highest notified serial that no attempt has used.
  [[nodiscard]] std::optional<dns::Serial> notified_serial() const;

  // One attempt after another.
  /// Begins the attempt at primary(). A notified serial is used for one attempt; afterwards the
  /// timers decide.
  Request begin_attempt();
  void end_attempt() noexcept { running_ = false; }
  void confirm() noexcept { confirmed_ = true; }
  /// The same primary's next attempt requests the whole zone. False: this one did already.
  bool fall_back() noexcept { return !std::exchange(whole_zone_, true); }
  /// Goes on to the next primary; false: all have been asked.
  bool ask_next();
  /// Begins again at the first primary.
  void begin_anew() noexcept { asked_ = 0; }
  /// Begins again with this primary, unless a cycle is under way.
  void begin_with(const Endpoint& primary);
  /// Gives the cycle up, with the attempt under way; the next one is as this one should have been.
  void give_up() noexcept;
  /// Ends the cycle; the result is the wish for another one. `is_news`: the notified serial is
  /// still ahead of ours, hence its primary comes first.
  std::optional<Wish> end(bool is_news);

  // Wishes from outside.
  /// Keeps a wish until the cycle under way ends. False: none is under way.
  bool put_off(Wish wish);
  /// The next cycle takes any serial, by AXFR.
  void replace_next() noexcept { replace_ = true; }
  /// This cycle takes any serial, or the next one.
  [[nodiscard]] bool is_replacing() const noexcept { return replace_ || replacing_; }
  /// Notes whether the primary's serial was another than ours and not ahead of it. True if that was
  /// not known before.
  bool note_behind(const Endpoint& primary, bool is_behind);
  /// No primary is behind any more.
  void forget_behind() noexcept { behind_.clear(); }
  /// Whether a NOTIFY with a serial that is not ahead of `ours` contradicts what is known about its
  /// sender. It can be forged or late, so the sender is asked before the operator gets a warning.
  [[nodiscard]] bool is_doubt(const NotifyRequest& request, dns::Serial ours) const;
  /// The primary that a NOTIFY comes from; null: none of this zone.
  [[nodiscard]] const Primary* sender(const NotifyRequest& request) const;
  /// A NOTIFY with a newer serial, or without one. Nullopt: the cycle under way will deal with it.
  std::optional<Wish> on_notify(const NotifyRequest& request);

 private:
  /// A notified serial, with the primary that sent it.
  struct Hint {
    dns::Serial serial;
    std::size_t primary = 0;
  };

  [[nodiscard]] std::size_t turn() const { return (first_ + asked_) % primaries_.size(); }
  [[nodiscard]] bool under_way() const noexcept { return running_ || asked_ > 0; }

  Primaries primaries_;
  std::size_t first_ = 0;  // the primary with which the cycle began
  std::size_t asked_ = 0;  // primaries that this cycle is done with
  bool running_ = false;
  bool confirmed_ = false;
  bool whole_zone_ = false;  // the next attempt requests an AXFR
  bool replace_ = false;     // the next cycle takes any serial
  bool replacing_ = false;   // this cycle does
  std::optional<Wish> again_;
  std::optional<Hint> hint_;
  std::set<Endpoint> behind_;  // see note_behind()
};

}  // namespace pando::manager
