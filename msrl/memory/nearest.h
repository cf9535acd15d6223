// The k nearest entries of a segment library while it is searched.
#ifndef MSRL_MEMORY_NEAREST_H_
#define MSRL_MEMORY_NEAREST_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace msrl {

struct Neighbour {
  std::int64_t slot = -1;
  float distance = 0.0F;
  bool operator==(const Neighbour&) const = default;
};

namespace internal {

// Keeps the best that it was offered, nearest first and of equal distances the older first, so the
// result does not depend on the order of the offers. Distances are squared while it collects.
class NearestCollector {
 public:
  struct Filter {
    const float* actions = nullptr;  // of all slots; null: every action will do
    std::size_t action_size = 0;
    const float* wanted = nullptr;
    float most_squared = 0.0F;  // squared distance of actions; 0 means equal
  };

  // `sequence` says for each slot when it came. `out` is filled.
  NearestCollector(std::span<Neighbour> out, float most_squared, const std::int64_t* sequence,
                   const Filter& filter)
      : out_(out), most_squared_(most_squared), sequence_(sequence), filter_(filter) {}

  bool full() const { return count_ == out_.size(); }
  // No squared distance beyond it is of interest.
  float bound() const { return full() ? out_.back().distance : most_squared_; }
  // Whether the slot would be kept if its action will do.
  bool Wants(std::int64_t slot, float squared) const {
    if (!(squared <= bound())) return false;
    return !full() || squared < bound() || sequence_[slot] < sequence_[out_.back().slot];
  }
  void Offer(std::int64_t slot, float squared) {
    if (!Wants(slot, squared) || !ActionWillDo(slot)) return;
    std::size_t place = full() ? count_ - 1 : count_++;
    for (; place > 0 && Before(slot, squared, out_[place - 1]); --place)
      out_[place] = out_[place - 1];
    out_[place] = {slot, squared};
  }
  // How many there are; their distances are no longer squared.
  int Finish() {
    for (Neighbour& neighbour : out_.first(count_))
      neighbour.distance = std::sqrt(neighbour.distance);
    return static_cast<int>(count_);
  }

 private:
  bool Before(std::int64_t slot, float squared, const Neighbour& other) const {
    return squared < other.distance ||
           (squared == other.distance && sequence_[slot] < sequence_[other.slot]);
  }
  bool ActionWillDo(std::int64_t slot) const {
    if (filter_.actions == nullptr) return true;
    const float* action = filter_.actions + static_cast<std::size_t>(slot) * filter_.action_size;
    float squared = 0.0F;
    for (std::size_t i = 0; i < filter_.action_size; ++i) {
      const float difference = action[i] - filter_.wanted[i];
      squared += difference * difference;
    }
    return squared <= filter_.most_squared;
  }

  std::span<Neighbour> out_;
  std::size_t count_ = 0;
  float most_squared_;
  const std::int64_t* sequence_;
  Filter filter_;
};

}  // namespace internal
}  // namespace msrl

#endif  // MSRL_MEMORY_NEAREST_H_
