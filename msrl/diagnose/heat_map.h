// A matrix as a picture.
#ifndef MSRL_DIAGNOSE_HEAT_MAP_H_
#define MSRL_DIAGNOSE_HEAT_MAP_H_

#include "msrl/core/segment_matrix.h"
#include "msrl/diagnose/svg.h"

namespace msrl {

// Draws the matrix into a square of the given upper left corner and side: blue below zero, red
// above, by the cube root of the entries; lines and labels for the lift's blocks, fine lines
// between actions. Labels take 40 pixels to the left and 20 above, the colour bar 75 to the right.
void DrawHeatMap(Svg& svg, const SegmentMatrix& matrix, const Svg::Vec2& corner, double side);

}  // namespace msrl

#endif  // MSRL_DIAGNOSE_HEAT_MAP_H_
