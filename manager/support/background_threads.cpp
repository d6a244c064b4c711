#include "manager/support/background_threads.h"

#include <sys/resource.h>
#include <unistd.h>

#include <thread>

namespace pando::manager {

BackgroundThreads::BackgroundThreads(std::size_t count) {
  // A thread begins with the nice value of the one that makes it, and the way back is not allowed
  // to everybody: so one that ends at once makes them.
  std::thread([this, count] {
    const auto self = static_cast<id_t>(::gettid());
    const int own = ::getpriority(PRIO_PROCESS, self);
    static_cast<void>(::setpriority(PRIO_PROCESS, self, own + kNice));
    pool_.emplace(count);
  }).join();
}

}  // namespace pando::manager
