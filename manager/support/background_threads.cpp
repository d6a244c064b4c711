#include "manager/support/background_threads.h"

#include <sys/resource.h>

#include <thread>

namespace pando::manager {

BackgroundThreads::BackgroundThreads(std::size_t count, int nice) {
  // A thread inherits the nice value of its creator, and not everybody may lower a nice value
  // again. So a short-lived thread creates the pool's threads.
  std::thread([this, count, nice] {
    const auto self = static_cast<id_t>(::gettid());
    const int own = ::getpriority(PRIO_PROCESS, self);
    static_cast<void>(::setpriority(PRIO_PROCESS, self, own + nice));
    pool_.emplace(count);
  }).join();
}

}  // namespace pando::manager
