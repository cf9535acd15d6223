#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/core/check.h"
#include "msrl/core/patterns.h"
#include "msrl/core/segment.h"
#include "msrl/datasets/trajectory_file.h"
#include "msrl/files/npy.h"

namespace msrl::cli {
namespace {

struct DescribeOptions {
  std::string file;
  std::string lift = "full";
  std::string npy;
  bool json = false;
  bool matrix = false;
};

// Wider matrices are shown only on request.
constexpr Index kMaxShownDimension = 32;

void PrintTable(const std::vector<std::string>& row_labels,
                const std::vector<std::string>& column_labels, const Eigen::MatrixXd& values) {
  std::size_t label_width = 0;
  for (const std::string& label : row_labels) label_width = std::max(label_width, label.size());
  std::string header(label_width + 4, ' ');
  std::vector<std::size_t> widths;
  for (const std::string& label : column_labels) {
    widths.push_back(std::max<std::size_t>(label.size(), 9));
    header += fmt::format(" {:>{}}", label, widths.back());
  }
  fmt::print("{}\n", header);
  for (Index i = 0; i < values.rows(); ++i) {
    std::string line =
        fmt::format("    {:<{}}", row_labels[static_cast<std::size_t>(i)], label_width);
    for (Index j = 0; j < values.cols(); ++j) {
      // an exact zero reads better as a dot: the pattern of the blocks stands out
      const std::string cell = values(i, j) == 0.0 ? "." : fmt::format("{:.4g}", values(i, j));
      line += fmt::format(" {:>{}}", cell, widths[static_cast<std::size_t>(j)]);
    }
    fmt::print("{}\n", line);
  }
}

std::string FormatVector(const Eigen::VectorXd& values) {
  std::string text = "[";
  for (Index i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{:.6g}", i == 0 ? "" : ", ", values[i] == 0.0 ? 0.0 : values[i]);
  }
  return text + "]";
}

// sum_t of each channel: the column of the constant channel.
void PrintTotals(const SegmentMatrix& matrix) {
  fmt::print("  totals (sums over the transitions)\n");
  for (const LiftBlock& block : matrix.lift()->blocks()) {
    if (block.name == "1" || block.size == 0) continue;
    fmt::print("    {:<9} {}\n", block.name, FormatVector(matrix.Block(block.name, "1")));
  }
}

void PrintBlockNorms(const SegmentMatrix& matrix) {
  std::vector<std::string> names;
  for (const LiftBlock& block : matrix.lift()->blocks()) {
    if (block.size > 0) names.push_back(block.name);
  }
  const auto count = static_cast<Index>(names.size());
  Eigen::MatrixXd norms(count, count);
  for (Index i = 0; i < count; ++i) {
    for (Index j = 0; j < count; ++j) {
      norms(i, j) =
          matrix.Block(names[static_cast<std::size_t>(i)], names[static_cast<std::size_t>(j)])
              .norm();
    }
  }
  fmt::print("  block norms\n");
  PrintTable(names, names, norms);
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
    fmt::print("    first     {}\n    last      {}\n", FormatVector(ends.x_0),
               FormatVector(ends.x_T));
  } else {
    fmt::print("  end points not recoverable: no net displacement\n");
  }
}

void PrintText(const Trajectory& trajectory, const SegmentMatrix& matrix, bool show_matrix) {
  fmt::print("trajectory {}\n  horizon {}\n", trajectory.name, matrix.Horizon());
  PrintTotals(matrix);
  PrintBlockNorms(matrix);
  PrintPatterns(matrix);
  if (show_matrix || matrix.dim() <= kMaxShownDimension) {
    fmt::print("  matrix\n");
    const std::vector<std::string> labels = matrix.lift()->Labels();
    PrintTable(labels, labels, matrix.Dense());
  } else {
    fmt::print("  matrix {} x {} not shown; use --matrix, --json or --npy\n", matrix.dim(),
               matrix.dim());
  }
  fmt::print("\n");
}

std::string ToJsonLine(const Trajectory& trajectory, const SegmentMatrix& matrix) {
  const Lift& lift = *matrix.lift();
  nlohmann::ordered_json object;
  object["name"] = trajectory.name;
  object["horizon"] = matrix.Horizon();
  object["lift"] = LiftKindName(lift.kind());
  object["lift_id"] = lift.id().ToString();
  object["d"] = lift.d();
  object["q"] = lift.q();
  object["labels"] = lift.Labels();
  const Eigen::MatrixXd dense = matrix.Dense();
  object["matrix"] = std::vector<double>(dense.data(), dense.data() + dense.size());
  nlohmann::ordered_json& patterns = object["patterns"] = nlohmann::ordered_json::object();
  for (const PatternResidual& pattern : AllPatterns(matrix)) {
    patterns[pattern.name] = {{"holds", pattern.Holds()},
                              {"residual", pattern.residual},
                              {"relative", pattern.Relative()}};
  }
  const Endpoints ends = RecoverEndpoints(matrix);
  if (ends.defined) {
    object["endpoints"] = {{"first", std::vector<double>(ends.x_0.begin(), ends.x_0.end())},
                           {"last", std::vector<double>(ends.x_T.begin(), ends.x_T.end())},
                           {"error_bound", ends.error_bound}};
  } else {
    object["endpoints"] = nullptr;
  }
  // names come from the file and may hold any bytes
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void RunDescribe(const DescribeOptions& options) {
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
    WriteNpy(options.npy, shape, values);
  }
  if (options.json) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      fmt::print("{}\n", ToJsonLine(file.trajectories[i], matrices[i]));
    }
    return;
  }
  if (!options.npy.empty()) {
    fmt::print("wrote {} matrices of {} x {} to {}\n", matrices.size(), lift->m(), lift->m(),
               options.npy);
    return;
  }
  fmt::print("{}: {} trajectories, lift {}\n\n", options.file, matrices.size(), lift->Describe());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    PrintText(file.trajectories[i], matrices[i], options.matrix);
  }
}

}  // namespace

void AddDescribe(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("describe", "Turn trajectories into matrices and say what they show");
  command->footer(
      "FILE holds one trajectory per line,\n"
      "  {\"x\": [[...] T+1 rows], \"a\": [[...] T rows], \"r\": [T numbers]}\n"
      "with states x and actions a already embedded as vectors (.jsonl), or rows of\n"
      "  episode,t,x0,...,a0,...,r  (.csv), or episodes of the command collect (.h5).\n"
      "See docs/file-formats.md.");
  const auto options = std::make_shared<DescribeOptions>();
  command->add_option("FILE", options->file, "Trajectories (.jsonl, .csv or .h5)")->required();
  command->add_option("--lift", options->lift,
                      "full | compact | compact-no-action | compact-no-reward (default full)");
  command->add_flag("--json", options->json, "One JSON object per trajectory");
  command->add_option("--npy", options->npy, "Write all matrices to this file, N x m x m float64");
  command->add_flag("--matrix", options->matrix, "Show the matrix however large it is");
  command->callback([options] { RunDescribe(*options); });
}

}  // namespace msrl::cli
