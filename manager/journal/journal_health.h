#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pando::manager {

/// Positions of records that are lost; 0: not known, or none.
struct LostRange {
  std::uint64_t from = 0;  ///< where a damaged file begins that was left out, or a damaged end
  std::uint64_t to = 0;    ///< the last position known to be used, where the files end before it
  bool operator==(const LostRange&) const = default;
};

/// What is known of a journal's health: whether its files have all records that were synced, and
/// whether groups are taken.
///
/// A value: the journal changes its own, and readers in other threads have copies. Records may be
/// lost while another part cannot be read. The state is kUnreadable then, and lacks_records() is
/// true all the same.
class JournalHealth {
 public:
  using Clock = std::chrono::steady_clock;

  enum class State : std::uint8_t {
    kWhole,       ///< no record is known to be missing
    kBehind,      ///< lags behind the store: records are lost, and a snapshot of all zones has them
    kPartUnread,  ///< lags, too; the records are in a file that may become readable again
    kUnreadable,  ///< the journal's end is not known: groups are refused until it can be read
  };

  JournalHealth() = default;
  /// `timeout`: a part that cannot be read for so long is taken for lost.
  explicit JournalHealth(Clock::duration timeout) : timeout_(timeout) {}

  [[nodiscard]] State state() const noexcept {
    return unreadable_.empty() ? records_ : State::kUnreadable;
  }
  /// Why the state is not kWhole, for people.
  [[nodiscard]] const std::string& reason() const noexcept {
    return unreadable_.empty() ? lack_ : unreadable_;
  }
  [[nodiscard]] bool is_unreadable() const noexcept { return !unreadable_.empty(); }
  /// True until a snapshot has all zones: an update would exist in the live store only, or after a
  /// gap.
  [[nodiscard]] bool lacks_records() const noexcept { return records_ != State::kWhole; }
  /// Why records are missing, for people; empty: none is.
  [[nodiscard]] const std::string& lack() const noexcept { return lack_; }
  [[nodiscard]] const LostRange& lost() const noexcept { return lost_; }
  /// False after a start that found records and could not make them durable again, and while the
  /// end cannot be read. Meanwhile no promise may depend on those records, and no image may have
  /// them.
  [[nodiscard]] bool has_durable_end() const noexcept { return is_secured_ && !is_unreadable(); }
  /// Why groups are refused at present, for people; empty: they are taken.
  [[nodiscard]] const std::string& refusal() const noexcept {
    return refusal_.empty() ? unreadable_ : refusal_;
  }

  /// Files that a snapshot replaced although they could not be read (*.unread). Zones that are not
  /// in the snapshot may have records there.
  struct Replaced {
    std::uint64_t files = 0;
    std::string last;  ///< path of one of them; empty: there is none
  };
  [[nodiscard]] const Replaced& replaced() const noexcept { return replaced_; }

  /// Whether a part cannot be read for longer than the timeout.
  [[nodiscard]] bool has_lasting_gap(Clock::time_point now = Clock::now()) const noexcept;
  /// The same, and a snapshot of the store may take the place of all files, if the store has each
  /// zone's data.
  [[nodiscard]] bool has_gap_to_close(Clock::time_point now = Clock::now()) const noexcept;
  /// Whether a live store has all that was acknowledged.
  [[nodiscard]] bool store_has_all() const noexcept { return store_has_all_; }

  /// A fault was found. The reason of an unreadable journal stays the first one.
  void report(State fault, const std::string& why, Clock::time_point now = Clock::now());
  /// A damaged file or end was left out, whose first record would have had the position.
  void leave_out(std::uint64_t first) noexcept;
  /// The files end before `position`, which is known to be used.
  void extend_lost(std::uint64_t position) noexcept;
  void add_replaced(std::string path);
  void refuse(std::string why) { refusal_ = std::move(why); }
  void accept() noexcept { refusal_.clear(); }
  void set_secured(bool secured) noexcept { is_secured_ = secured; }
  void set_store_has_all() noexcept { store_has_all_ = true; }

  /// For a health that was made by reading the files again: takes over from the last one what the
  /// files do not tell.
  void continue_from(const JournalHealth& before);
  /// A snapshot has taken the place of the files of health `sealed`. What was found since stays.
  /// True: a part could not be read, so nobody knows which positions it had.
  bool heal(const JournalHealth& sealed);

 private:
  State records_ = State::kWhole;  // never kUnreadable
  std::string lack_;
  std::string unreadable_;
  std::string refusal_;
  LostRange lost_;
  Replaced replaced_;
  bool is_secured_ = true;
  bool store_has_all_ = false;
  Clock::time_point unread_since_{};
  Clock::duration timeout_{};
};

}  // namespace pando::manager
