// A queue that costs nothing while it is empty (std::deque allocates at once, and 10,000 idle connections have several). Elements
// are moved when the storage grows. pop_front on an empty one is our bug.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace ccixfer {

template <typename T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] size_t size() const { return items_.size() - head_; }
  [[nodiscard]] T& front() { return (*this)[0]; }
  [[nodiscard]] T& operator[](size_t index) {
    CHECK(index < size());
    return items_[head_ + index];
  }
  [[nodiscard]] const T& operator[](size_t index) const {
    CHECK(index < size());
    return items_[head_ + index];
  }
  template <typename... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    // Half of it is spent: move the rest to the front rather than grow.
    if (items_.size() == items_.capacity() && head_ > items_.size() / 2) compact();
    return items_.emplace_back(std::forward<Arguments>(arguments)...);
  }
  void push_back(T item) { emplace_back(std::move(item)); }
  void push_front(T item) {
    if (head_ > 0) {
      items_[--head_] = std::move(item);
    } else {
      items_.insert(items_.begin(), std::move(item));
    }
  }
  T pop_front() {
    CHECK(!empty());
    T item = std::move(items_[head_++]);
    if (head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    }
    return item;
  }
  void drop_front() {
    CHECK(!empty());
    items_[head_++] = T();
    if (head_ == items_.size()) clear();
  }
  T pop_back() {
    CHECK(!empty());
    T item = std::move(items_.back());
    items_.pop_back();
    if (head_ == items_.size()) clear();
    return item;
  }
  void erase(size_t index) {
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(head_ + index));
    if (head_ == items_.size()) clear();
  }
  void clear() {
    items_.clear();
    head_ = 0;
  }

 private:
  void compact() {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  std::vector<T> items_;  // none when the queue is empty: the ones before head_ were let go
  size_t head_ = 0;
};

}  // namespace ccixfer
