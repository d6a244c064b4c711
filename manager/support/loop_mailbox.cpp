#include "manager/support/loop_mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <asio/buffer.hpp>

namespace pando::manager {

/// Throws without an eventfd, as the loop's constructor does.
LoopMailbox::LoopMailbox(asio::io_context& io)
    : asio::execution_context::service(io), wakeups_(io, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  await();
}

void LoopMailbox::shutdown() {
  asio::error_code ignored;
  wakeups_.close(ignored);
  tasks_.clear();
}

void LoopMailbox::wake() noexcept {
  const std::uint64_t one = 1;
  // Fails only with a full counter, which wakes the loop as well.
  [[maybe_unused]] const auto written = ::write(wakeups_.native_handle(), &one, sizeof one);
}

/// The counter is read before the list is taken, so a task that comes in between wakes once more.
void LoopMailbox::await() {
  wakeups_.async_read_some(asio::buffer(&count_, sizeof count_),
                           [this](const asio::error_code& error, std::size_t /*bytes*/) {
                             if (error) return;
                             await();
                             tasks_.run();
                           });
}

}  // namespace pando::manager
