// The obstruction score by a scan over all reachable matrices, for several descriptors at once.
#ifndef MSRL_DIAGNOSE_DESCRIPTOR_SCAN_H_
#define MSRL_DIAGNOSE_DESCRIPTOR_SCAN_H_

#include <Eigen/Core>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "msrl/core/lift.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment_matrix.h"

namespace msrl::internal {

// Distances to the reachable matrices, in the whole descriptor and in parts of it. With one-hot
// actions most entries of the matrices vanish or repeat others; each is held once, and Frobenius
// norms are sums weighted by how often it occurs.
class DescriptorScan {
 public:
  // Part 0 is the whole descriptor. `lift` is a full or compact one; `rng` draws a matrix to tell
  // entries by.
  DescriptorScan(const Lift::Ptr& lift, Rng& rng);

  std::size_t parts() const { return parts_.size(); }
  const std::string& name(std::size_t part) const { return parts_[part].name; }

  // The entries that are held, one column per matrix.
  Eigen::MatrixXd Gather(std::span<const SegmentMatrix> matrices) const;

  // For each candidate the distance to the nearest reachable matrix; both as gathered.
  std::vector<double> Nearest(std::size_t part, const Eigen::MatrixXd& candidates,
                              const Eigen::MatrixXd& reachable) const;

 private:
  struct Part {
    std::string name;
    std::vector<Index> rows;     // of what is gathered
    std::vector<double> counts;  // how often each occurs in this part of the matrix
  };

  void AddPart(std::string name, const std::vector<Index>& channels);

  SegmentMatrix typical_;
  std::vector<std::pair<Index, Index>> entries_;
  std::vector<Part> parts_;
};

}  // namespace msrl::internal

#endif  // MSRL_DIAGNOSE_DESCRIPTOR_SCAN_H_
