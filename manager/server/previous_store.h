#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "shm/store.h"

namespace pando::manager {

/// How long workers of the last manager go on with its store, or old workers of another layout with
/// theirs, because ours lacks data yet. Usually until all zone files were checked. Two things end
/// it earlier:
///   - The machine has too little memory. The other store's memory is given back when its last
///     reader leaves.
///   - Loading gets nowhere. A file that is never read to its end must not hold back all other
///     zones, and updates.
/// Lives on the commit thread.
class PreviousStore {
 public:
  struct Calls {
    std::function<std::uint64_t()> loaded;  ///< number of zones with data
    std::function<void()> leave;            ///< gives workers our store
    std::function<void()> load_again;       ///< loads zones that have no data
  };
  struct Options {
    /// Loading may show no progress for so long. Neither the first reading of a file from a slow
    /// disk nor the sorting of a zone's records shows any.
    std::chrono::milliseconds patience = std::chrono::minutes(3);
    /// Loading fills the last sixteenth of the memory within a second.
    std::chrono::milliseconds interval{100};
  };

  /// `store` outlives the object.
  PreviousStore(asio::io_context& io, const shm::Store& store, Calls calls, Options options);

  /// Never calls `leave` before it returns, because the start has to go on first.
  void keep();
  /// Does nothing unless kept. `reason` is for the log.
  void leave(std::string_view reason);
  /// All zone files were checked, and `failed` of them have no new data. They may have found no
  /// memory beside the other store: they are loaded once more when its memory is free.
  void loaded(std::uint64_t failed);
  /// Forgets the store without a call: the process ends.
  void stop() noexcept;

 private:
  void look();
  void look_later();
  void await_memory(std::uint64_t limit, int looks);
  [[nodiscard]] bool lacks_memory() const;
  [[nodiscard]] bool is_stuck(std::chrono::steady_clock::time_point now);

  const shm::Store& store_;
  Calls calls_;
  Options options_;
  asio::steady_timer timer_;
  bool kept_ = false;
  bool lacked_memory_ = false;
  std::chrono::steady_clock::time_point since_{};
  // Both only grow while zones are loaded, and within bounds: nothing else holds the store for
  // ever.
  std::uint64_t most_loaded_ = 0;
  std::uint64_t most_chunks_ = 0;
  std::chrono::steady_clock::time_point progressed_{};
};

}  // namespace pando::manager
