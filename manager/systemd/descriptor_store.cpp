#include "manager/systemd/descriptor_store.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <memory>

namespace pando::manager::systemd {

namespace {
struct Freed {
  void operator()(void* memory) const { ::free(memory); }
};
}  // namespace

std::vector<InheritedDescriptor> take_inherited_descriptors() {
  char** names = nullptr;
  // Unset LISTEN_FDS, so that child processes do not mistake their descriptors for sockets.
  const int count = ::sd_listen_fds_with_names(1, &names);
  const std::unique_ptr<char*, Freed> list(names);
  std::vector<InheritedDescriptor> inherited;
  for (int i = 0; i < count; ++i) {
    const std::unique_ptr<char, Freed> name(names[i]);
    inherited.push_back({name.get(), Fd(SD_LISTEN_FDS_START + i)});
  }
  return inherited;
}

DescriptorStore::DescriptorStore() : open_(std::getenv("NOTIFY_SOCKET") != nullptr) {}

void DescriptorStore::keep(const std::string& name, int descriptor) const {
  if (!open_) return;
  // Without FDPOLL=0 the service manager drops a descriptor with an error, and nobody learns of it.
  ::sd_pid_notify_with_fds(0, 0, fmt::format("FDSTORE=1\nFDPOLL=0\nFDNAME={}", name).c_str(),
                           &descriptor, 1);
}

void DescriptorStore::remove(const std::string& name) const {
  if (open_) ::sd_notify(0, fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name).c_str());
}

}  // namespace pando::manager::systemd
