#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/json_output.h"
#include "msrl/core/check.h"
#include "msrl/core/patterns.h"
#include "msrl/core/ridge.h"
#include "msrl/core/segment.h"
#include "msrl/datasets/trajectory_file.h"
#include "msrl/files/npy.h"
#include "msrl/report/tables.h"

namespace msrl::cli {
namespace {

struct DescribeOptions : OptionList {
  std::string& file = Required("FILE", "Trajectories (.jsonl, .csv or .h5)");
  std::string& lift =
      Text("--lift",
           "full | compact | compact-no-action | compact-no-reward | compact-effort | "
           "compact-squares (default full)",
           "full");
  bool& json = Flag("--json", "One JSON object per trajectory");
  std::string& npy = Text("--npy", "Write all matrices to this file, N x m x m float64");
  Replace replace = ReplaceFlag();
  bool& matrix = Flag("--matrix", "Show the matrix however large it is");
  bool& all = Flag("--all", "Show every trajectory, however many there are");
};

// More trajectories are shown only on request.
constexpr std::size_t kMostShown = 10;

// Wider matrices are shown only on request.
constexpr Index kMaxShownDimension = 32;

// The matrix without what is rounding alone: by |M_ij| <= sqrt(M_ii M_jj), the sum behind an entry
// has an error of about that times the machine's precision.
Eigen::MatrixXd WithoutRounding(const SegmentMatrix& matrix) {
  constexpr double kRounding = 1e-13;
  Eigen::MatrixXd dense = matrix.Dense();
  const Eigen::VectorXd size = dense.diagonal().cwiseMax(0.0).cwiseSqrt();
  for (Index j = 0; j < dense.cols(); ++j) {
    for (Index i = 0; i < dense.rows(); ++i) {
      if (std::abs(dense(i, j)) <= kRounding * size[i] * size[j]) dense(i, j) = 0.0;
    }
  }
  return dense;
}

// Rows and columns have the same labels.
void PrintTable(const std::vector<std::string>& labels, const Eigen::MatrixXd& values) {
  std::size_t label_width = 0;
  for (const std::string& label : labels) label_width = std::max(label_width, label.size());
  std::string header(label_width + 4, ' ');
  std::vector<std::size_t> widths;
  for (const std::string& label : labels) {
    widths.push_back(std::max<std::size_t>(label.size(), 9));
    header += fmt::format(" {:>{}}", label, widths.back());
  }
  fmt::print("{}\n", header);
  for (Index i = 0; i < values.rows(); ++i) {
    std::string line = fmt::format("    {:<{}}", labels[static_cast<std::size_t>(i)], label_width);
    for (Index j = 0; j < values.cols(); ++j) {
      // an exact zero reads better as a dot: the pattern of the blocks stands out
      const std::string cell = values(i, j) == 0.0 ? "." : fmt::format("{:.4g}", values(i, j));
      line += fmt::format(" {:>{}}", cell, widths[static_cast<std::size_t>(j)]);
    }
    fmt::print("{}\n", line);
  }
}

// What is no more than `rounding` is 0.
std::string FormatVector(const Eigen::VectorXd& values, double rounding = 0.0) {
  const Eigen::VectorXd shown = (values.array().abs() > rounding).select(values, 0.0);  // no "-0"
  return fmt::format("[{:.6g}]", fmt::join(shown.begin(), shown.end(), ", "));
}

// sum_t of each channel: the column of the constant channel.
void PrintTotals(const Lift& lift, const Eigen::MatrixXd& matrix) {
  fmt::print("  totals (sums over the transitions)\n");
  const auto one = std::ranges::find(lift.blocks(), "1", &LiftBlock::name);
  for (const LiftBlock& block : lift.blocks()) {
    if (block.name == "1" || block.size == 0) continue;
    fmt::print("    {:<9} {}\n", block.name,
               FormatVector(matrix.col(one->offset).segment(block.offset, block.size)));
  }
}

void PrintBlockNorms(const Lift& lift, const Eigen::MatrixXd& matrix) {
  std::vector<LiftBlock> blocks;
  std::vector<std::string> names;
  for (const LiftBlock& block : lift.blocks()) {
    if (block.size == 0) continue;
    blocks.push_back(block);
    names.push_back(block.name);
  }
  const auto count = static_cast<Index>(blocks.size());
  Eigen::MatrixXd norms(count, count);
  for (Index i = 0; i < count; ++i) {
    for (Index j = 0; j < count; ++j) {
      const LiftBlock& row = blocks[static_cast<std::size_t>(i)];
      const LiftBlock& column = blocks[static_cast<std::size_t>(j)];
      norms(i, j) = matrix.block(row.offset, column.offset, row.size, column.size).norm();
    }
  }
  fmt::print("  block norms\n");
  PrintTable(names, norms);
}

void PrintPatterns(const SegmentMatrix& matrix) {
  fmt::print("  patterns (relative residual)\n");
  for (const PatternResidual& pattern : AllPatterns(matrix)) {
    fmt::print("    {:<26} {:<6} {:.2g}\n", pattern.name, pattern.Holds() ? "holds" : "no",
               pattern.Relative());
  }
  const Endpoints ends = RecoverEndpoints(matrix);
  if (ends.defined) {
    fmt::print("  end points recovered from the matrix (error below {:.1g})\n", ends.error_bound);
    fmt::print("    first     {}\n    last      {}\n", FormatVector(ends.x_0, ends.error_bound),
               FormatVector(ends.x_T, ends.error_bound));
  } else {
    fmt::print("  end points not recoverable: no net displacement\n");
  }
}

// Whichever channels say more than twice their error.
void PrintRegressions(const SegmentMatrix& matrix) {
  fmt::print("  what moves what (ridge regressions, slope +- standard error)\n");
  for (const ChannelRegression& regression : Regressions(matrix)) {
    std::string terms;
    for (const ChannelRegression::Term& term : regression.terms) {
      if (std::abs(term.slope) <= 2.0 * term.error) continue;
      terms += fmt::format("  {} {:+.3g} +- {:.1g}", term.channel, term.slope, term.error);
    }
    fmt::print("    {:<9} {:3.0f} % explained{}\n", regression.of, 100.0 * regression.explained,
               terms.empty() ? "  by nothing that stands out" : terms);
  }
}

void PrintText(const Trajectory& trajectory, const SegmentMatrix& matrix, bool show_matrix) {
  fmt::print("trajectory {}\n  horizon {}\n", report::Printable(trajectory.name), matrix.Horizon());
  const Eigen::MatrixXd shown = WithoutRounding(matrix);
  PrintTotals(*matrix.lift(), shown);
  PrintBlockNorms(*matrix.lift(), shown);
  PrintPatterns(matrix);
  if (matrix.lift()->kind() != LiftKind::kFull) PrintRegressions(matrix);
  if (show_matrix || matrix.dim() <= kMaxShownDimension) {
    fmt::print("  matrix\n");
    PrintTable(matrix.lift()->Labels(), shown);
  } else {
    fmt::print("  matrix {} x {} not shown; use --matrix, --json or --npy\n", matrix.dim(),
               matrix.dim());
  }
  fmt::print("\n");
}

Json ToJson(const Trajectory& trajectory, const SegmentMatrix& matrix) {
  const Lift& lift = *matrix.lift();
  const Eigen::MatrixXd dense = matrix.Dense();
  Json object{{"name", trajectory.name},
              {"horizon", matrix.Horizon()},
              {"lift", LiftKindName(lift.kind())},
              {"lift_id", lift.id().ToString()},
              {"d", lift.d()},
              {"q", lift.q()},
              {"labels", lift.Labels()},
              {"matrix", std::vector<double>(dense.data(), dense.data() + dense.size())}};
  Json& patterns = object["patterns"] = Json::object();
  for (const PatternResidual& pattern : AllPatterns(matrix)) {
    patterns[pattern.name] = {{"holds", pattern.Holds()},
                              {"residual", pattern.residual},
                              {"relative", pattern.Relative()}};
  }
  if (lift.kind() != LiftKind::kFull) {
    Json& regressions = object["regressions"] = Json::array();
    for (const ChannelRegression& regression : Regressions(matrix)) {
      Json terms = Json::object();
      for (const ChannelRegression::Term& term : regression.terms) {
        terms[term.channel] = {{"slope", term.slope}, {"error", term.error}};
      }
      regressions.push_back({{"of", regression.of},
                             {"intercept", regression.intercept},
                             {"explained", regression.explained},
                             {"on", std::move(terms)}});
    }
  }
  Json& endpoints = object["endpoints"];
  if (const Endpoints ends = RecoverEndpoints(matrix); ends.defined) {
    endpoints = {{"first", std::vector<double>(ends.x_0.begin(), ends.x_0.end())},
                 {"last", std::vector<double>(ends.x_T.begin(), ends.x_T.end())},
                 {"error_bound", ends.error_bound}};
  }
  return object;
}

void RunDescribe(const DescribeOptions& options, const Program& /*program*/) {
  const TrajectoryFile file = ReadTrajectories(options.file);
  const Lift::Ptr lift = Lift::Make({LiftKindFromName(options.lift), file.d, file.q, /*slots=*/{}});

  // describe everything before the first output: a bad trajectory leaves nothing half-written
  std::vector<SegmentMatrix> matrices;
  for (const Trajectory& trajectory : file.trajectories) {
    try {
      matrices.push_back(Describe(lift, trajectory.segment));
    } catch (const UserError& error) {
      throw UserError(StrCat(options.file, ": trajectory ", trajectory.name, ": ", error.what()));
    }
  }

  if (!options.npy.empty()) {
    std::vector<double> values;
    for (const SegmentMatrix& matrix : matrices) {
      const Eigen::MatrixXd dense = matrix.Dense();
      values.insert(values.end(), dense.data(), dense.data() + dense.size());
    }
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(matrices.size()), lift->m(),
                                          lift->m()};
    WriteNpy(options.npy, shape, values, options.replace());
  }
  if (options.json) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      PrintJson(ToJson(file.trajectories[i], matrices[i]), kOneLine);
    }
    return;
  }
  if (!options.npy.empty()) {
    fmt::print("wrote {} matrices of {} x {} to {}\n", matrices.size(), lift->m(), lift->m(),
               options.npy);
    return;
  }
  fmt::print("{}: {} trajectories, lift {}\n\n", options.file, matrices.size(), lift->Describe());
  const std::size_t count = options.all ? matrices.size() : std::min(matrices.size(), kMostShown);
  for (std::size_t i = 0; i < count; ++i) {
    PrintText(file.trajectories[i], matrices[i], options.matrix);
  }
  if (count < matrices.size()) {
    fmt::print("{} more trajectories not shown; use --all, --json or --npy\n",
               matrices.size() - count);
  }
}

}  // namespace

void AddDescribe(CLI::App& app, const Program& program) {
  AddCommand(app, program, "describe", "Turn trajectories into matrices and say what they show",
             RunDescribe)
      ->footer(
          "FILE holds one trajectory per line,\n"
          "  {\"x\": [[...] T+1 rows], \"a\": [[...] T rows], \"r\": [T numbers]}\n"
          "with states x and actions a already embedded as vectors (.jsonl), or rows of\n"
          "  episode,t,x0,...,a0,...,r  (.csv), or episodes of the command collect (.h5).\n"
          "See docs/file-formats.md.");
}

}  // namespace msrl::cli
