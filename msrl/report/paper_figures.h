// The paper's figures for target control: main table, matched gain and negative controls.
#ifndef MSRL_REPORT_PAPER_FIGURES_H_
#define MSRL_REPORT_PAPER_FIGURES_H_

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace msrl::report {

inline constexpr int kPaperFamilies = 5;
// In the order of its columns: AntMaze, Reacher/Pusher, Walker2d, Hopper, Humanoid.
const std::array<std::string_view, kPaperFamilies>& PaperFamilies();

struct PaperFigure {
  double mean = 0.0;
  std::optional<double> std;  // the controls and averages have none
};

// Normalised few-shot AUC of a row.
struct PaperMethod {
  std::string_view id;  // as sweep files call it: "msrl-init"
  std::string_view title;
  std::string_view component;  // what is initialised from the sources
  std::array<PaperFigure, kPaperFamilies> families;
  double average = 0.0;
};

// Rows of the main table, then those that only the table of controls has.
std::span<const PaperMethod> PaperMethods();
// Null for an id that the paper does not have.
const PaperMethod* FindPaperMethod(std::string_view id);
// The figure of a row in a column: a family or "Average".
std::optional<PaperFigure> FindPaperFigure(std::string_view id, std::string_view column);
// a - b as the paper has it in a column: from the table of matched gains for msrl-init and
// msrl-scratch, otherwise the difference of the rows.
std::optional<double> PaperGain(std::string_view a, std::string_view b, std::string_view column);

}  // namespace msrl::report

#endif  // MSRL_REPORT_PAPER_FIGURES_H_
