#include "base/progress.h"

#include <algorithm>
#include <array>
#include <utility>

namespace pando {

namespace {

thread_local Progress* progress_here = nullptr;

}  // namespace

std::optional<unsigned> Progress::Seen::percent() const noexcept {
  if (total == 0) return std::nullopt;
  return static_cast<unsigned>(static_cast<double>(std::min(done, total)) /
                               static_cast<double>(total) * 100.0);
}

void Progress::begin(Phase phase, std::uint64_t total) noexcept {
  total_.store(0, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  phase_.store(phase, std::memory_order_relaxed);
  total_.store(total, std::memory_order_relaxed);
}

Progress::Seen Progress::seen() const noexcept {
  return {phase_.load(std::memory_order_relaxed), done_.load(std::memory_order_relaxed),
          total_.load(std::memory_order_relaxed)};
}

Progress* Progress::here() noexcept { return progress_here; }

Progress::Scope::Scope(Progress* progress) noexcept
    : before_(std::exchange(progress_here, progress)) {}

Progress::Scope::~Scope() { progress_here = before_; }

std::string_view to_text(Progress::Phase phase) noexcept {
  constexpr std::array<std::string_view, 8> kWords = {
      "preparing", "reading", "sorting", "building", "comparing", "checking", "judging", "putting"};
  return kWords[static_cast<std::size_t>(phase)];
}

ProgressCount::ProgressCount(Progress::Phase phase, std::uint64_t total,
                             std::uint64_t steps) noexcept
    : progress_(Progress::here()), total_(total), steps_(steps) {
  if (progress_ != nullptr) progress_->begin(phase, total);
}

void ProgressCount::tell() noexcept {
  if (progress_ == nullptr) return;
  given_up_ = progress_->is_given_up();
  if (steps_ == 0) return progress_->at(count_);
  const double part = std::min(static_cast<double>(count_) / static_cast<double>(steps_), 1.0);
  progress_->at(static_cast<std::uint64_t>(static_cast<double>(total_) * part));
}

}  // namespace pando
