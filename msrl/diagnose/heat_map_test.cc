#include "msrl/diagnose/heat_map.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "msrl/core/segment.h"

namespace msrl {
namespace {

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

std::string Draw(const SegmentMatrix& matrix) {
  Svg svg(400, 400, "a matrix");
  DrawHeatMap(svg, matrix, {50, 50}, 200);
  return svg.Document();
}

SegmentMatrix OneStep(double from, double to) {
  LiftSpec spec;
  spec.kind = LiftKind::kFull;
  spec.d = 1;
  spec.q = 1;
  return Describe(Lift::Make(spec), Segment{(Eigen::MatrixXd(1, 2) << from, to).finished(),
                                            Eigen::MatrixXd::Ones(1, 1), Eigen::VectorXd::Zero(1)});
}

TEST(HeatMap, HasACellForEveryEntryAndALabelForEveryBlock) {
  const SegmentMatrix matrix = OneStep(0.5, 1.5);
  const std::string picture = Draw(matrix);
  const auto m = static_cast<std::size_t>(matrix.lift()->m());
  EXPECT_EQ(Count(picture, "#efefef"), m * m);
  for (const char* label : {">δ<", ">ξ⊗c<", ">ξ⊗δ<"}) EXPECT_EQ(Count(picture, label), 2U) << label;
}

// The fills of the cells, "rrggbb", row by row.
std::vector<std::string> Cells(const std::string& picture) {
  std::vector<std::string> cells;
  std::istringstream lines(picture);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("#efefef") != std::string::npos) {
      cells.push_back(line.substr(line.find("fill=\"#") + 7, 6));
    }
  }
  return cells;
}

TEST(HeatMap, TheLargestEntryIsTheDeepestRedAndNegativeOnesAreBlue) {
  // position and displacement have opposite signs
  const SegmentMatrix matrix = OneStep(1.0, -0.5);
  const std::vector<std::string> cells = Cells(Draw(matrix));
  const Eigen::MatrixXd dense = matrix.Dense();
  ASSERT_EQ(std::ssize(cells), dense.size());
  ASSERT_LT(dense.minCoeff(), 0.0);
  for (Index i = 0; i < dense.rows(); ++i) {
    for (Index j = 0; j < dense.cols(); ++j) {
      const std::string& cell = cells[static_cast<std::size_t>(i * dense.cols() + j)];
      const std::string red = cell.substr(0, 2);
      const std::string blue = cell.substr(4, 2);
      EXPECT_EQ(blue > red, dense(i, j) < 0.0) << cell << " for " << dense(i, j);
      EXPECT_EQ(cell == "ffffff", dense(i, j) == 0.0) << cell << " for " << dense(i, j);
      EXPECT_EQ(cell == "b2182b", dense(i, j) == dense.maxCoeff()) << cell;
    }
  }
}

}  // namespace
}  // namespace msrl
