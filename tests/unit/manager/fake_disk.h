#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "manager/store_file.h"

namespace pando::manager::testing {

/// A model of a disk with a page cache: what was synced survives power_cut(), of the rest any part
/// may. `fail` makes chosen calls fail.
class FakeDisk final : public Files {
 public:
  enum class Call {
    kOpen,
    kRead,
    kWrite,
    kSync,
    kPreallocate,
    kTruncate,
    kRename,
    kRemove,
    kSyncDirectory,
    kList
  };
  /// Asked before each call; returns the error the call shall give, or nothing.
  std::function<Status(Call, const std::string& path)> fail = [](Call, const std::string&) {
    return Status();
  };
  std::map<Call, int> calls;

  Result<std::unique_ptr<StoreFile>> open(const std::string& path, OpenMode mode) override {
    if (auto asked = ask(Call::kOpen, path); !asked) return pass(asked);
    auto& node = names_[path];
    if (mode == OpenMode::kCreate || mode == OpenMode::kSecret) {
      node = std::make_shared<Node>();
      changed_names_.insert(path);
    }
    if (!node) {
      names_.erase(path);
      return ::pando::fail(Errc::kNotFound, "{}: no such file", path);
    }
    return std::unique_ptr<StoreFile>(std::make_unique<Handle>(*this, path, node));
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (auto asked = ask(Call::kRename, from); !asked) return asked;
    names_[to] = names_.at(from);
    names_.erase(from);
    changed_names_.insert(from);
    changed_names_.insert(to);
    return {};
  }
  Status remove(const std::string& path) override {
    if (auto asked = ask(Call::kRemove, path); !asked) return asked;
    if (names_.erase(path) != 0) changed_names_.insert(path);
    return {};
  }
  Status sync_directory(const std::string& directory) override {
    if (auto asked = ask(Call::kSyncDirectory, directory); !asked) return asked;
    std::erase_if(changed_names_, [&](const std::string& path) {
      if (!path.starts_with(directory + "/")) return false;
      if (const auto found = names_.find(path); found != names_.end())
        durable_names_[path] = found->second;
      else
        durable_names_.erase(path);
      return true;
    });
    return {};
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (auto asked = ask(Call::kList, directory); !asked) return pass(asked);
    std::vector<std::string> found;
    for (const auto& [path, node] : names_)
      if (path.starts_with(directory + "/")) found.push_back(path.substr(directory.size() + 1));
    return found;
  }
  Status make_directory(const std::string&) override { return {}; }

  /// The machine loses power: unsynced writes and names survive at random.
  void power_cut(std::mt19937_64& random) {
    for (const std::string& path : changed_names_)
      if (random() % 2 == 0) {
        if (const auto found = names_.find(path); found != names_.end())
          durable_names_[path] = found->second;
        else
          durable_names_.erase(path);
      }
    names_ = durable_names_;
    changed_names_.clear();
    for (auto& [path, node] : names_) node->lose_unsynced(random);
  }

  Bytes& contents(const std::string& path) { return names_.at(path)->bytes; }
  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (const auto& [path, node] : names_) all.push_back(path);
    return all;
  }

 private:
  struct Node {
    Bytes bytes;    // as programs see them
    Bytes durable;  // as of the last sync
    struct Write {
      std::uint64_t offset;
      Bytes bytes;
    };
    std::vector<Write> unsynced;

    void put(std::uint64_t offset, ByteView data) {
      if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size());
      std::copy(data.begin(), data.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    void lose_unsynced(std::mt19937_64& random) {
      bytes = durable;
      for (const Write& write : unsynced) {
        // Sectors of one write reach the disk independently of each other.
        for (std::size_t at = 0; at < write.bytes.size(); at += 64)
          if (random() % 2 == 0)
            put(write.offset + at,
                ByteView(write.bytes)
                    .subspan(at, std::min<std::size_t>(64, write.bytes.size() - at)));
      }
      unsynced.clear();
      durable = bytes;
    }
  };

  class Handle final : public StoreFile {
   public:
    Handle(FakeDisk& disk, std::string path, std::shared_ptr<Node> node)
        : disk_(disk), path_(std::move(path)), node_(std::move(node)) {}
    Status write_at(std::uint64_t offset, ByteView bytes) override {
      auto asked = disk_.ask(Call::kWrite, path_);
      // One that fails has written a part of it.
      if (!asked) bytes = bytes.first(bytes.size() / 2);
      node_->put(offset, bytes);
      node_->unsynced.push_back({offset, Bytes(bytes.begin(), bytes.end())});
      return asked;
    }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
      if (auto asked = disk_.ask(Call::kRead, path_); !asked) return pass(asked);
      if (offset >= node_->bytes.size()) return std::size_t{0};
      const std::size_t n = std::min<std::size_t>(out.size(), node_->bytes.size() - offset);
      std::copy_n(node_->bytes.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
      return n;
    }
    Status sync() override {
      if (auto asked = disk_.ask(Call::kSync, path_); !asked) {
        node_->unsynced
            .clear();  // as Linux does: the pages count as clean, the disk has not got them
        return asked;
      }
      node_->durable = node_->bytes;
      node_->unsynced.clear();
      return {};
    }
    Status preallocate(std::uint64_t octets) override {
      if (auto asked = disk_.ask(Call::kPreallocate, path_); !asked) return asked;
      node_->bytes.resize(octets);
      return {};
    }
    Status truncate(std::uint64_t octets) override {
      if (auto asked = disk_.ask(Call::kTruncate, path_); !asked) return asked;
      node_->bytes.resize(octets);
      return {};
    }
    Result<std::uint64_t> size() override { return node_->bytes.size(); }

   private:
    FakeDisk& disk_;
    std::string path_;
    std::shared_ptr<Node> node_;
  };

  Status ask(Call call, const std::string& path) {
    ++calls[call];
    return fail(call, path);
  }

  std::map<std::string, std::shared_ptr<Node>> names_, durable_names_;
  std::set<std::string> changed_names_;
};

}  // namespace pando::manager::testing
