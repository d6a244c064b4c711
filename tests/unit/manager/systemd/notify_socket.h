#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "base/fd.h"

namespace pando::manager::systemd::testing {

/// The service manager's end of NOTIFY_SOCKET, and its store of descriptors.
class NotifySocket {
 public:
  NotifySocket() {
    char pattern[] = "/tmp/pando-notify-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ + "/notify";
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket_ = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~NotifySocket() {
    ::unsetenv("NOTIFY_SOCKET");
    std::filesystem::remove_all(directory_);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  /// The store behind all messages that were sent: names and descriptors.
  std::map<std::string, Fd>& stored() {
    while (receive_one()) {
    }
    return stored_;
  }
  /// Lines of messages that are not about the store.
  std::string other_lines;

 private:
  bool receive_one() {
    std::array<char, 4096> text{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{text.data(), text.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t length = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0) return false;
    Fd passed;
    if (const cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
      passed = Fd(descriptor);
    }
    apply(std::string(text.data(), static_cast<std::size_t>(length)), std::move(passed));
    return true;
  }
  /// As systemd does.
  void apply(const std::string& message, Fd passed) {
    std::istringstream lines(message);
    std::string name;
    bool store = false;
    bool remove = false;
    for (std::string line; std::getline(lines, line);) {
      if (line == "FDSTORE=1")
        store = true;
      else if (line == "FDSTOREREMOVE=1")
        remove = true;
      else if (line.starts_with("FDNAME="))
        name = line.substr(7);
      else if (line != "FDPOLL=0")
        other_lines += line + "\n";
    }
    if (remove) stored_.erase(name);
    if (store) {
      EXPECT_TRUE(passed) << "a descriptor comes with the message";
      stored_[name] = std::move(passed);
    }
  }

  std::string directory_;
  Fd socket_;
  std::map<std::string, Fd> stored_;
};

}  // namespace pando::manager::systemd::testing
