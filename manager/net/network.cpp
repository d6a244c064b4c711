#include "manager/net/network.h"

namespace pando::manager {

void Network::stop() {
  work_.reset();
  loop_.stop();
  if (thread_.joinable()) thread_.join();
  builders().stop();
  builders().join();
}

}  // namespace pando::manager
