// A queue in one piece of memory that grows by doubling: O(1) at both ends, and unlike std::deque, which allocates at once, it
// costs 24 bytes while nothing was ever in it (10,000 idle connections have several each). Elements are moved when it grows, so a
// reference or iterator ends with the next change. The memory stays for the next elements when the last one is taken.
// Taking from an empty one is our bug. Single-threaded.
#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/base/invariant.h"

namespace ccixfer {

template <typename T>
class RingBuffer {
  template <typename Ring, typename Value>
  class Iterator {
    template <typename, typename>
    friend class Iterator;

   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;
    Iterator() = default;
    Iterator(Ring* ring, size_t index) : ring_(ring), index_(static_cast<difference_type>(index)) {}
    template <typename R, typename V>
    requires(std::is_const_v<Ring> && !std::is_const_v<R>) Iterator(const Iterator<R, V>& other)
        : ring_(other.ring_), index_(other.index_) {}
    [[nodiscard]] size_t index() const { return static_cast<size_t>(index_); }
    reference operator*() const { return (*ring_)[index()]; }
    pointer operator->() const { return &**this; }
    reference operator[](difference_type n) const { return *(*this + n); }
    Iterator& operator+=(difference_type n) {
      index_ += n;
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator operator--(int) {
      const Iterator before = *this;
      --*this;
      return before;
    }
    friend Iterator operator+(Iterator at, difference_type n) { return at += n; }
    friend Iterator operator+(difference_type n, Iterator at) { return at += n; }
    friend Iterator operator-(Iterator at, difference_type n) { return at -= n; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) { return a.index_ - b.index_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.index_ <=> b.index_; }

   private:
    Ring* ring_ = nullptr;
    difference_type index_ = 0;
  };

 public:
  using value_type = T;
  using iterator = Iterator<RingBuffer, T>;
  using const_iterator = Iterator<const RingBuffer, const T>;

  RingBuffer() = default;
  RingBuffer(RingBuffer&& other) noexcept { swap(other); }
  RingBuffer& operator=(RingBuffer&& other) noexcept {
    RingBuffer(std::move(other)).swap(*this);
    return *this;
  }
  RingBuffer(const RingBuffer&) = delete;
  RingBuffer& operator=(const RingBuffer&) = delete;
  ~RingBuffer() {
    clear();
    if (items_ != nullptr) std::allocator<T>().deallocate(items_, capacity_);
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] T& operator[](size_t index) {
    invariant(index < size_, "index < size_");
    return *slot(index);
  }
  [[nodiscard]] const T& operator[](size_t index) const {
    invariant(index < size_, "index < size_");
    return *slot(index);
  }
  [[nodiscard]] T& front() { return (*this)[0]; }
  [[nodiscard]] const T& front() const { return (*this)[0]; }
  [[nodiscard]] T& back() { return (*this)[size_ - size_t{1}]; }
  [[nodiscard]] const T& back() const { return (*this)[size_ - size_t{1}]; }
  iterator begin() { return {this, 0}; }
  iterator end() { return {this, size_}; }
  [[nodiscard]] const_iterator begin() const { return {this, 0}; }
  [[nodiscard]] const_iterator end() const { return {this, size_}; }
  auto rbegin() { return std::make_reverse_iterator(end()); }
  auto rend() { return std::make_reverse_iterator(begin()); }

  template <typename... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ < capacity_) {
      std::construct_at(slot(size_), std::forward<Arguments>(arguments)...);
    } else {
      T item(std::forward<Arguments>(arguments)...);  // before the move: it may be made from one of the elements
      grow();
      std::construct_at(slot(size_), std::move(item));
    }
    return *slot(size_++);
  }
  void push_back(T item) { emplace_back(std::move(item)); }
  void push_front(T item) {
    if (size_ == capacity_) grow();
    head_ = (head_ - 1) & (capacity_ - 1);
    std::construct_at(slot(0), std::move(item));
    ++size_;
  }
  [[nodiscard]] T pop_front() {
    T item = std::move(front());
    drop_front();
    return item;
  }
  void drop_front() {
    std::destroy_at(&front());
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
  }
  [[nodiscard]] T pop_back() {
    T item = std::move(back());
    drop_back();
    return item;
  }
  void drop_back() {
    std::destroy_at(&back());
    --size_;
  }
  // O(n): those before it move, or those behind it, whichever are fewer.
  iterator insert(const_iterator at, T item) {
    const size_t index = at.index();
    invariant(index <= size_, "index <= size_");
    if (index < size_ / 2) {
      push_front(std::move(item));
      for (size_t i = 0; i < index; ++i) std::swap(*slot(i), *slot(i + 1));
    } else {
      push_back(std::move(item));
      for (size_t i = size_ - size_t{1}; i > index; --i) std::swap(*slot(i), *slot(i - 1));
    }
    return {this, index};
  }
  iterator erase(const_iterator first, const_iterator last) {
    const size_t index = first.index();
    const size_t count = last.index() - index;
    invariant(index <= last.index() && last.index() <= size_, "index <= last.index() && last.index() <= size_");
    if (count > 0 && index < size_ - last.index()) {
      for (size_t i = index; i > 0; --i) *slot(i - 1 + count) = std::move(*slot(i - 1));
      for (size_t i = 0; i < count; ++i) drop_front();
    } else if (count > 0) {
      for (size_t i = index; i + count < size_; ++i) *slot(i) = std::move(*slot(i + count));
      for (size_t i = 0; i < count; ++i) drop_back();
    }
    return {this, index};
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  template <typename Predicate>
  size_t erase_if(const Predicate& predicate) {  // how many
    const size_t before = size_;
    erase(std::remove_if(begin(), end(), predicate), end());
    return before - size_;
  }
  void clear() {
    while (size_ > 0) drop_back();
    head_ = 0;
  }
  void swap(RingBuffer& other) noexcept {
    std::swap(items_, other.items_);
    std::swap(capacity_, other.capacity_);
    std::swap(head_, other.head_);
    std::swap(size_, other.size_);
  }

 private:
  static constexpr uint32_t capacity_first = 1;  // an idle connection keeps what it used last
  static constexpr uint32_t capacity_max = 1u << 31;
  [[nodiscard]] T* slot(size_t index) const { return items_ + ((head_ + index) & (capacity_ - size_t{1})); }
  void grow() {
    invariant(capacity_ < capacity_max, "capacity_ < capacity_max");
    const uint32_t capacity = capacity_ == 0 ? capacity_first : 2 * capacity_;
    T* items = std::allocator<T>().allocate(capacity);
    for (size_t i = 0; i < size_; ++i) {
      std::construct_at(items + i, std::move(*slot(i)));
      std::destroy_at(slot(i));
    }
    if (items_ != nullptr) std::allocator<T>().deallocate(items_, capacity_);
    items_ = items;
    capacity_ = capacity;
    head_ = 0;
  }

  T* items_ = nullptr;
  uint32_t capacity_ = 0;  // a power of two, or 0
  uint32_t head_ = 0;      // below capacity_
  uint32_t size_ = 0;
};

}  // namespace ccixfer
