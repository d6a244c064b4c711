#pragma once

#include <map>
#include <string>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"

namespace pando::manager {

/// Claims prevent two managers of one user from serving the same address. The kernel lets all
/// sockets of a user share an address (SO_REUSEPORT). A second manager would take half of the first
/// one's queries, and neither would see an error. A manager that serves an address therefore
/// listens at an abstract Unix socket named after user and address, which the kernel closes with
/// the process. Workers have no claim: a killed manager's successor finds none.
class AddressClaims {
 public:
  /// Claims `address` for this process. kExists, with the other's process number, when another
  /// manager of this user has it. All else is success: a name that a stranger holds, or the kernel
  /// does not give, keeps no address from being served.
  Status claim(const Endpoint& address);
  void release(const Endpoint& address);
  void release_all();

 private:
  struct Other {
    Fd connection;  ///< ends with the other process
    int pid = 0;
  };
  std::map<std::string, Fd> ours_;       // by abstract name
  std::map<std::string, Other> others_;  // of the attempts that failed
};

}  // namespace pando::manager
