#include "manager/network.h"

namespace pando::manager {

void Network::stop() {
  work_.reset();
  loop_.stop();
  if (thread_.joinable()) thread_.join();
  builders_.stop();
  builders_.join();
}

}  // namespace pando::manager
