// The paper's figures (figures.txt): everything that shows one beside ours reads it here.
//
// Tables: "control" (normalised few-shot AUC of methods), "gain" (matched gains, "a:b"),
// "pretraining" and "diagnostics" (of sources). Columns of the first two are families of target
// tasks, then "Average".
#ifndef MSRL_PAPER_FIGURES_H_
#define MSRL_PAPER_FIGURES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msrl {

struct PaperFigure {
  double mean = 0.0;
  std::optional<double> std = {};
};

// In the paper's order. std::out_of_range for an unknown table.
const std::vector<std::string>& PaperRows(const std::string& table);
// Of target tasks, in the order of the columns.
const std::vector<std::string>& PaperFamilies();
// The paper's family that a family of environments (EnvSpec::family) belongs to, or itself.
const std::string& PaperFamily(const std::string& family);

// Empty for a row or a column that the table does not have.
std::optional<PaperFigure> FindPaperFigure(const std::string& table, std::string_view row,
                                           std::string_view column);
// a - b in a column: from the table of gains, otherwise the difference of the rows of "control".
std::optional<double> PaperGain(std::string_view a, std::string_view b, std::string_view column);

}  // namespace msrl

#endif  // MSRL_PAPER_FIGURES_H_
