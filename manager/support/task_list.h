#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace pando::manager {

/// Tasks that many threads hand to one. There is no lock: a preempted sender blocks neither
/// the taker nor other senders waiting.
class TaskList {
 public:
  TaskList() = default;
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;
  ~TaskList() { clear(); }

  /// Any thread. True: the list was empty, so the taker has to be woken.
  template <class Task>
  [[nodiscard]] bool push(Task task) {
    Node* const node = new NodeOf<Task>(std::move(task));
    Node* before = newest_.load(std::memory_order_relaxed);
    do node->next = before;
    // Release: the taker sees the task and the node. Only the taker removes nodes, and all of them
    // at once, so `before` is either still the newest one or was replaced.
    while (!newest_.compare_exchange_weak(before, node, std::memory_order_release,
                                          std::memory_order_relaxed));
    return before == nullptr;
  }
  /// The taker: runs the tasks there are; those of one sender in the order of their push().
  void run() {
    for (Node* node = take(); node != nullptr;) {
      const std::unique_ptr<Node> task(std::exchange(node, node->next));
      task->run();
    }
  }
  /// The taker, or the last user: drops the tasks.
  void clear() noexcept {
    for (Node* node = take(); node != nullptr;)
      const std::unique_ptr<Node> dropped(std::exchange(node, node->next));
  }
  [[nodiscard]] bool is_empty() const noexcept {
    return newest_.load(std::memory_order_relaxed) == nullptr;
  }

 private:
  struct Node {
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual ~Node() = default;
    virtual void run() = 0;
    Node* next = nullptr;  // pushed before
  };
  template <class Task>
  struct NodeOf final : Node {
    explicit NodeOf(Task&& given) : task(std::move(given)) {}
    void run() override { task(); }
    Task task;
  };

  /// All tasks, the oldest first.
  Node* take() noexcept {
    Node* newest = newest_.exchange(nullptr, std::memory_order_acquire);
    Node* oldest = nullptr;
    while (newest != nullptr) {
      Node* const node = std::exchange(newest, newest->next);
      node->next = std::exchange(oldest, node);
    }
    return oldest;
  }

  std::atomic<Node*> newest_{nullptr};
};

}  // namespace pando::manager
