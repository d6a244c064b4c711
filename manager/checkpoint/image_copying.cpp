#include "manager/checkpoint/image_copying.h"

#include <asio/post.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "base/crash_point.h"
#include "base/pause_point.h"
#include "base/steady_time.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

/// Pause between tries while the machine lacks memory for the store.
constexpr std::chrono::milliseconds kAgain{1000};
constexpr std::chrono::milliseconds kNap{50};

}  // namespace

ImageCopying::ImageCopying(asio::io_context& io, LentImage lent)
    : io_(io), lent_(std::move(lent)) {}

ImageCopying::~ImageCopying() {
  ending_ = true;
  thread_.pool().join();
}

void ImageCopying::start(Done done) {
  done_ = std::move(done);
  asio::post(thread_.pool(), [this] { run(); });
}

std::uint64_t ImageCopying::bytes_left() const noexcept {
  return lent_.borrowing->bytes() - lent_.borrowing->copied();
}

void ImageCopying::run() {
  const auto start = std::chrono::steady_clock::now();
  pause_point("image-copy");
  Status copied;
  for (bool told = false; !ending_;) {
    copied = lent_.borrowing->copy(*lent_.source, [this] { return !ending_; });
    if (copied || copied.error().code != Errc::kFull) break;
    if (!std::exchange(told, true))
      log::error("image_copy_waits", "reason", copied.error().text, "bytes_left", bytes_left());
    for (auto slept = kNap; slept < kAgain && !ending_; slept += kNap)
      std::this_thread::sleep_for(kNap);
  }
  if (ending_) return;
  if (copied)
    log::info("image_copied", "bytes", lent_.borrowing->bytes(), "ms", milliseconds_since(start));
  crash_point("image-copied");
  asio::post(io_, [this, copied] { end(copied); });
}

void ImageCopying::end(const Status& copied) {
  const Status settled = copied ? lent_.borrowing->settle() : copied;
  std::exchange(done_, {})(settled);
}

}  // namespace pando::manager
