"""The report: a results folder as one page, report.json and figures for a paper.

It only reads results. All numbers are gathered first (`numbers`), the figures are drawn from them
(`figures`) and the page shows both (`page`).
"""
